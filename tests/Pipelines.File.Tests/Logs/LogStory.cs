using System.IO.Compression;

namespace FilePipelines.Tests;

/// <summary>
/// What a writer, logrotate and a follower do one after the other, in words, so that a story is a line of a table. Steps are separated by
/// semicolons, and "1-3" means the lines 1, 2 and 3. The writer has "log" open, whatever name that file has by now.
/// </summary>
/// <remarks>
/// <para>The writer: write LINES, torn TEXT (no line end), reopen, cut.</para>
/// <para>
/// Files: put FILE LINES (a whole file), append FILE LINES, mv, over (mv onto a file), cp, rm, mkdir, ln TARGET LINK (turns one at
/// once), carry (as mv(1) to another volume), gzip, age FILE DAYS, rotate (as logrotate), copycut COPY (copytruncate), tick (the
/// next one of the file system's clock), pause.
/// </para>
/// <para>
/// The follower: names PATTERNS, clock (a manual one), mark OFFSET (a checkpoint of the log), follow [FILE], read LINES (they come next,
/// and whole), whole LINES (no gap is before them), gap LINE (one is), half TEXT (without a line end), at OFFSET, quiet (nothing comes),
/// keep (the checkpoint), stop. unix, timed and untimed skip the story on other systems.
/// </para>
/// </remarks>
internal sealed class LogStory : IAsyncDisposable
{
    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private GrowingFile? _writer;
    private FollowedLog? _lines;
    private ManualClock? _clock;
    private string _followed = "log";
    private QuickOptions _options = FollowedLog.Quick;

    public static async Task RunAsync(string story)
    {
        await using LogStory running = new();
        string[] steps = story.Split(';', StringSplitOptions.RemoveEmptyEntries | StringSplitOptions.TrimEntries);
        for (int i = 0; i < steps.Length; i++)
        {
            try
            {
                await running.StepAsync(steps[i].Split(' '));
            }
            catch (Exception e) when (!e.Message.StartsWith("$XunitDynamicSkip$", StringComparison.Ordinal))
            {
                throw new InvalidOperationException($"Step {i + 1}, '{steps[i]}': {e.Message}", e);
            }
        }
    }

    public async ValueTask DisposeAsync()
    {
        if (_lines is not null)
        {
            await _lines.DisposeAsync();
        }

        _writer?.Dispose();
        _folder.Dispose();
    }

    private async Task StepAsync(string[] words)
    {
        string[] lines = [.. words.Skip(1).SelectMany(LinesOf)];
        string one = words.Length > 1 ? _folder.File(words[1]) : _folder.File("log");
        string other = words.Length > 2 ? _folder.File(words[2]) : "";
        switch (words[0])
        {
            case "unix":
                Assert.SkipWhen(OperatingSystem.IsWindows(), "Links take a privilege there, times are others, and open files keep names.");
                break;
            case "timed" or "untimed":
                File.WriteAllText(_folder.File("any"), "");
                bool isTimed = FileIdentity.TryGet(_folder.File("any"), out FileIdentity any) && any.Created != 0;
                Assert.SkipUnless(isTimed == (words[0] == "timed"), "It is about systems that tell when a file was made, or do not.");
                break;
            case "write":
                Writer.Append(TextOf(lines));
                break;
            case "torn":
                Writer.Append(words[1]);
                break;
            case "reopen":
                Writer.Reopen();
                break;
            case "cut":
                Writer.Cut(0);
                break;
            case "put":
                File.WriteAllText(one, TextOf(lines[1..]));
                break;
            case "append":
                File.AppendAllText(one, TextOf(lines[1..]));
                break;
            case "mv":
                File.Move(one, other);
                break;
            case "over":
                await Eventually.MovedOverAsync(one, other);
                break;
            case "cp":
                File.Copy(one, other, overwrite: true);
                break;
            case "rm":
                File.Delete(one);
                break;
            case "mkdir":
                Directory.CreateDirectory(one);
                break;
            case "ln":
                File.CreateSymbolicLink(other + ".new", one);
                Assert.Equal(0, UnixCalls.Default.Rename(UnixName.Of(other + ".new"), UnixName.Of(other)));
                break;
            case "carry":
                DateTime written = File.GetLastWriteTimeUtc(one);
                File.Copy(one, other);
                File.SetLastWriteTimeUtc(other, written);
                File.Delete(one);
                break;
            case "gzip":
                Compress(one);
                break;
            case "age":
                File.SetLastWriteTimeUtc(one, DateTime.UtcNow.AddDays(-int.Parse(words[2], CultureInfo.InvariantCulture)));
                break;
            case "rotate":
                Shift();
                File.Move(_folder.File("log"), _folder.File("log.1"));
                _writer?.Reopen();
                break;
            case "copycut":
                if (words[1] == "log.1")
                {
                    Shift();
                }

                File.Copy(_folder.File("log"), one);
                Writer.Cut(0);
                break;
            case "tick" or "pause":
                await Task.Delay(words[0] == "tick" ? 20 : 500, _stop);
                break;
            case "names":
                _options = _options with { RotatedNames = words[1..] };
                break;
            case "clock":
                _clock = new ManualClock();
                _options = _options with { TimeProvider = _clock };
                break;
            case "mark":
                Assert.True(FileIdentity.TryGet(_folder.File("log"), out FileIdentity identity));
                _options = _options with { Checkpoint = new(identity, long.Parse(words[1], CultureInfo.InvariantCulture)) };
                break;
            case "follow":
                _followed = one;
                _lines = new FollowedLog(_followed, _options);
                break;
            case "read" or "whole" or "gap" or "half":
                await ReadAsync(words[0], lines);
                break;
            case "at":
                Assert.Equal(long.Parse(words[1], CultureInfo.InvariantCulture), _lines!.Current.Checkpoint.Offset);
                break;
            case "quiet":
                _ = _lines!.StepAsync();
                await _lines.ExpectNothingAsync();
                break;
            case "keep":
                _options = _options with { Checkpoint = _lines!.Current.Checkpoint };
                break;
            case "stop":
                await _lines!.DisposeAsync();
                break;
            default:
                throw new ArgumentException("No such step.", nameof(words));
        }
    }

    private GrowingFile Writer => _writer ??= new GrowingFile(_folder.File("log"));

    private async Task ReadAsync(string how, string[] lines)
    {
        foreach (string expected in lines)
        {
            if (_clock is not null)
            {
                await _clock.AdvanceUntilAsync(_lines!.StepAsync(), _options.FollowInterval);
            }

            FollowedLine line = await _lines!.NextAsync();
            Assert.Equal((expected, how != "half", _followed), (line.ToString(), line.HasLineEnd, line.Path));
            Assert.True(how is "read" or "half" || line.IsAfterGap == (how == "gap"), $"Line {line}: gap {line.IsAfterGap}");
        }
    }

    /// <summary>log.1 becomes log.2, and so on.</summary>
    private void Shift()
    {
        int last = 0;
        while (File.Exists(_folder.File($"log.{last + 1}")))
        {
            last++;
        }

        for (; last > 0; last--)
        {
            File.Move(_folder.File($"log.{last}"), _folder.File($"log.{last + 1}"));
        }
    }

    /// <summary>As gzip(1): a new file with the old time, and the old one is gone.</summary>
    internal static void Compress(string path)
    {
        DateTime written = File.GetLastWriteTimeUtc(path);
        using (FileStream compressed = File.Create(path + ".gz"))
        {
            using GZipStream zip = new(compressed, CompressionLevel.Fastest);
            using FileStream content = new(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete);
            content.CopyTo(zip);
        }

        File.SetLastWriteTimeUtc(path + ".gz", written);
        File.Delete(path);
    }

    private static string TextOf(IEnumerable<string> lines) => string.Concat(lines.Select(static line => line + "\n"));

    private static IEnumerable<string> LinesOf(string word)
        => word.Split('-') is [var first, var last] && int.TryParse(first, CultureInfo.InvariantCulture, out int from)
            && int.TryParse(last, CultureInfo.InvariantCulture, out int to)
            ? Enumerable.Range(from, to - from + 1).Select(static line => line.ToString(CultureInfo.InvariantCulture)) : [word];
}
