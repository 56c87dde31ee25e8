using System.Globalization;
using System.Text;

namespace FilePipelines.Devices.Tests;

/// <summary>
/// A log that is written, rotated and followed: each line is shipped, then the checkpoint behind it is saved. After the failure the
/// follower goes on there, and every line was shipped or comes now.
/// </summary>
internal sealed class Checkpoints(FlushGuarantee guarantee) : Workload
{
    private const int Lines = 120;
    private const int LinesAFile = 50;

    internal override async Task RunAsync(string folder, Acknowledge acknowledge, Random random)
    {
        string log = Path.Combine(folder, "log");
        TaskCompletionSource isFollowed = new();
        Task following = Task.Run(() => FollowAsync(folder, acknowledge, isFollowed));
        for (int first = 0; first < Lines; first += LinesAFile)
        {
            if (first > 0)
            {
                // Without a checkpoint a follower begins with the file that has the name.
                await Task.WhenAny(isFollowed.Task, following);
                File.Move(log, $"{log}.{Lines - first}");
            }

            await using FilePipeWriter writer = FilePipeWriter.Create(log, new() { FlushGuarantee = guarantee });
            for (int line = first; line < Math.Min(first + LinesAFile, Lines); line++)
            {
                Encoding.UTF8.GetBytes($"line {line} {new string('x', random.Next(200))}\n", writer);
                await writer.FlushAsync();
                acknowledge("written", line);
            }
        }

        await following;
    }

    internal override async Task CheckAsync(string folder, IReadOnlyDictionary<string, long> promises)
    {
        long written = promises.GetValueOrDefault("written", -1);
        HashSet<int> there = [.. LinesOf(Path.Combine(folder, "shipped"))];
        for (int line = 0; line <= promises.GetValueOrDefault("shipped", -1); line++)
        {
            Demand(there.Contains(line), $"Line {line} was shipped, and is not there.");
        }

        string position = Path.Combine(folder, "position");
        Demand(File.Exists(position) || !promises.ContainsKey("saved"), "There is no checkpoint.");
        FileCheckpoint? checkpoint = null;
        if (File.Exists(position))
        {
            string text = File.ReadAllText(position);
            Demand(FileCheckpoint.TryParse(text, CultureInfo.InvariantCulture, out FileCheckpoint parsed), $"'{text}' is no checkpoint.");
            checkpoint = parsed;
        }

        HashSet<int> inLogs = [.. Directory.GetFiles(folder, "log*").SelectMany(LinesOf)];
        for (int line = 0; line <= written; line++)
        {
            Demand(there.Contains(line) || inLogs.Contains(line), $"Line {line} was written, and is neither shipped nor in the log.");
        }

        bool isAfterGap = false;
        if (written >= 0 && Enumerable.Range(0, (int)written + 1).Any(line => !there.Contains(line)))
        {
            isAfterGap = await ReadOnAsync(folder, checkpoint, (int)written, there);
        }

        // Btrfs numbers its volume anew with each mount (FileIdentity). The follower tells then that it does not find the file again.
        bool isAnotherVolume = FileIdentity.TryGet(Path.Combine(folder, "log"), out FileIdentity now)
            && checkpoint?.Identity.Volume is ulong volume && volume != now.Volume;
        for (int line = 0; line <= written; line++)
        {
            Demand(
                there.Contains(line) || (isAnotherVolume && isAfterGap),
                $"Line {line} was written, and neither shipped nor followed from {checkpoint} on.");
        }
    }

    private static IEnumerable<int> LinesOf(string path)
        => File.Exists(path)
            ? File.ReadAllText(path).Split('\n').SkipLast(1).Where(static line => line.StartsWith("line ", StringComparison.Ordinal))
                .Select(NumberOf)
            : [];

    private static int NumberOf(string line) => int.Parse(line.Split(' ')[1], CultureInfo.InvariantCulture);

    private static LogFollowerOptions Options(FileCheckpoint? checkpoint)
        => new() { Checkpoint = checkpoint, QuietTime = TimeSpan.FromMilliseconds(20), FollowInterval = TimeSpan.FromMilliseconds(5) };

    /// <summary>Reads on to the last line that was written. Returns whether the follower says that lines may be missing.</summary>
    private static async Task<bool> ReadOnAsync(string folder, FileCheckpoint? checkpoint, int last, HashSet<int> there)
    {
        bool isAfterGap = false;
        using CancellationTokenSource limit = new(Eventually.Limit);
        try
        {
            LogFollower follower = new(Path.Combine(folder, "log"), Options(checkpoint));
            await foreach (FollowedLine line in follower.ReadLinesAsync(limit.Token))
            {
                string text = line.ToString();
                isAfterGap |= line.IsAfterGap;
                if (text.StartsWith("line ", StringComparison.Ordinal))
                {
                    there.Add(NumberOf(text));
                    if (NumberOf(text) >= last)
                    {
                        break;
                    }
                }
            }
        }
        catch (OperationCanceledException)
        {
            // What has not come by now is lost.
        }

        return isAfterGap;
    }

    private async Task FollowAsync(string folder, Acknowledge acknowledge, TaskCompletionSource isFollowed)
    {
        FilePipeWriter shipped = FilePipeWriter.Create(Path.Combine(folder, "shipped"), new() { FlushGuarantee = guarantee });
        try
        {
            await foreach (FollowedLine line in new LogFollower(Path.Combine(folder, "log"), Options(null)).ReadLinesAsync())
            {
                string text = line.ToString();
                Encoding.UTF8.GetBytes($"{text}\n", shipped);
                await shipped.FlushAsync();
                acknowledge("shipped", NumberOf(text));
                FilePipeWriter position = FilePipeWriter.Create(
                    Path.Combine(folder, "position"), new() { Replace = true, FlushGuarantee = guarantee });
                Encoding.UTF8.GetBytes($"{line.Checkpoint}", position);
                await position.CompleteAsync();
                acknowledge("saved", NumberOf(text));
                isFollowed.TrySetResult();
                if (NumberOf(text) == Lines - 1)
                {
                    break;
                }
            }
        }
        finally
        {
            await shipped.CompleteAsync();
        }
    }
}
