using System.Globalization;
using System.Text;
using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>
/// A log that is written at full speed, rotated by logrotate(8), and followed. 60,000 lines at least, or a million where
/// PIPELINES_FILE_STRESS_SECONDS asks for more than two seconds.
/// </summary>
[Collection("whole process")]
[Trait("Category", StressTime.Category)]
public sealed class LogrotateTests : IDisposable
{
    /// <summary>How often it is rotated at least.</summary>
    private const int Rotations = 4;

    /// <summary>Bytes of a line.</summary>
    private const int LineLength = 9;

    private static readonly int s_lines = StressTime.Seconds > 2 ? 1_000_000 : 60_000;
    private static readonly TimeSpan s_limit = TimeSpan.FromMinutes(5);

    private readonly TempFolder _folder = new();
    private readonly string _log;
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    // What the follower has open, how often it was rotated, and how many lines there were when the writer was done; guarded by the lock.
    private readonly Lock _lock = new();
    private FileIdentity _followed;
    private int _rotations;
    private int _written;

    public LogrotateTests() => _log = _folder.File("log");

    public void Dispose() => _folder.Dispose();

    [Theory]
    [InlineData("create")]
    [InlineData("create\n compress")]
    [InlineData("create\n compress\n delaycompress")]
    [InlineData("create\n dateext\n dateformat -%Y%m%d-%s")]
    [InlineData("create\n compress\n dateext\n dateformat -%Y%m%d-%s")]
    [InlineData("nocreate\n olddir old")]
    public async Task Create_EveryLineComesOnceAndInOrder(string mode)
    {
        (List<int> lines, int rotations) = await RunAsync(mode, isCut: false);
        TestContext.Current.SendDiagnosticMessage($"{lines.Count} lines, {rotations} rotations");
        Assert.True(rotations >= Rotations);
        Assert.Equal(Enumerable.Range(0, Written), lines);
    }

    [Fact]
    public async Task CopyTruncate_NothingComesTwiceAndLinesAreLostAtCutsAlone()
    {
        (List<int> lines, int rotations) = await RunAsync("copytruncate", isCut: true);
        HashSet<int> kept = [];
        foreach (string file in Directory.EnumerateFiles(_folder.Path, "log*")
            .Where(static file => !file.EndsWith(".conf", StringComparison.Ordinal)))
        {
            kept.UnionWith(File.ReadLines(file).Where(static line => line != "end")
                .Select(static line => int.TryParse(line, CultureInfo.InvariantCulture, out int number) ? number : -1));
        }

        int lost = Written - lines.Count;
        int lostByLogrotate = Written - kept.Count(static number => number >= 0);
        int lostThoughCopied = Enumerable.Range(0, Written).Except(lines).Count(kept.Contains);
        TestContext.Current.SendDiagnosticMessage(
            $"{rotations} rotations; lost: {lost} lines, by logrotate {lostByLogrotate}; kept by logrotate and lost: {lostThoughCopied}");
        Assert.True(rotations >= Rotations);

        // Logrotate loses what comes between its copy and the cut; what the follower has not read by then is in the copy alone. Both are
        // one gap, at the cut.
        int gaps = Written - 1 > lines[^1] ? 1 : 0;
        int last = -1;
        foreach (int line in lines)
        {
            Assert.True(line > last, $"{line} comes after {last}");
            gaps += line > last + 1 ? 1 : 0;
            last = line;
        }

        Assert.InRange(gaps, 0, rotations);
    }

    private async Task<(List<int> Lines, int Rotations)> RunAsync(string mode, bool isCut)
    {
        ChildProcess.SkipUnlessLinux("logrotate");
        string hangUp = _folder.File("hang-up");
        string configuration = _folder.File("logrotate.conf", Encoding.UTF8.GetBytes(
            $"{_log} {{\n {mode}\n rotate 1000\n missingok\n postrotate\n  touch {hangUp}\n endscript\n}}\n"));
        if (OperatingSystem.IsLinux())
        {
            File.SetUnixFileMode(configuration, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }

        Directory.CreateDirectory(_folder.File("old"));
        using GrowingFile file = new(_log);
        Task<List<int>> following = Task.Run(() => FollowAsync(isCut), _stop);
        Task writing = Task.Run(() => Write(file, isCut ? null : hangUp), _stop);
        int rotations = 0;
        while (Written == 0)
        {
            // What is compressed before the follower has opened it, it cannot read, and the first file is the one that it begins with.
            await Eventually.TrueAsync(() => Written > 0 || (FileIdentity.TryGet(_log, out FileIdentity identity)
                && (identity == Followed || (rotations > 0 && !mode.Contains("compress", StringComparison.Ordinal)))));
            (int status, string output, string error) = await ChildProcess.RunAsync(
                $"timeout 600 logrotate -f -s '{_folder.File("state")}' '{configuration}'");
            Assert.True(status == 0, output + error);
            rotations++;
            Locked(() => _rotations = rotations);

            // A date counts seconds, and logrotate replaces nothing.
            await Task.Delay(mode.Contains("dateext", StringComparison.Ordinal) ? 1010 - DateTime.UtcNow.Millisecond : 50, _stop);
        }

        await writing.WaitAsync(s_limit, _stop);
        file.Append("end\n");
        return (await following.WaitAsync(s_limit, _stop), rotations);
    }

    /// <summary>A line a write, as a program that logs does; it opens the log anew when logrotate's script tells it to.</summary>
    private void Write(GrowingFile file, string? hangUp)
    {
        int i = 0;
        for (; (i < s_lines || (i % 64 == 0 && Locked(() => _rotations) < Rotations) || i % 64 != 0) && !_stop.IsCancellationRequested; i++)
        {
            file.Append(string.Create(CultureInfo.InvariantCulture, $"{i:D9}\n"));
            if (hangUp is not null && i % 64 == 0 && File.Exists(hangUp))
            {
                File.Delete(hangUp);
                file.Reopen();
            }
        }

        Locked(() => _written = i);
    }

    private async Task<List<int>> FollowAsync(bool isCut)
    {
        List<int> lines = new(s_lines);
        LogFollowerOptions options =
            new() { QuietTime = TimeSpan.FromMilliseconds(200), RotatedNames = ["{name}.#", "{name}-#", "old/{name}.#"] };
        await foreach (FollowedLine line in new LogFollower(_log, options).ReadLinesAsync(_stop))
        {
            Followed = line.Checkpoint.Identity;
            string text = line.ToString();
            if (text == "end")
            {
                return lines;
            }

            if (isCut && text.Length != LineLength)
            {
                // A cut comes within a line as well, when half of its write is there.
                continue;
            }

            Assert.Equal(LineLength, text.Length);
            Assert.True(int.TryParse(text, CultureInfo.InvariantCulture, out int number),
                text.Length < 100 ? text : $"{text.Length} bytes");
            lines.Add(number);
        }

        return lines;
    }

    private int Written => Locked(() => _written);

    private FileIdentity Followed
    {
        get => Locked(() => _followed);
        set => Locked(() => _followed = value);
    }

    private T Locked<T>(Func<T> access)
    {
        lock (_lock)
        {
            return access();
        }
    }
}
