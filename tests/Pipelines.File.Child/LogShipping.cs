using System.Globalization;
using System.Text;
using Pipelines.File;

namespace FilePipelines.Child;

/// <summary>Follows a log in batches with a checkpoint file, and tells which lines have come, until it is killed.</summary>
internal static class LogShipping
{
    private const int NumberLength = 12;

    /// <summary>
    /// A batch is one record, which is written before its checkpoint is saved: <c>b 0-99 g105-199 t;</c> are the numbers of whole lines, g
    /// comes after a gap, and t is what is no whole line. A process begins with the record <c>start</c>.
    /// </summary>
    internal static async Task<int> RunAsync(string log, string output, int lineLength)
    {
        CheckpointFile position = await CheckpointFile.OpenAsync($"{output}.position");
        using FileStream file = new(output, FileMode.Append, FileAccess.Write, FileShare.Read, bufferSize: 0);
        file.Write("\nstart\n"u8);
        LogFollowerOptions options = new()
        {
            Checkpoints = position.Checkpoints,
            QuietTime = TimeSpan.FromMilliseconds(200),
            RotatedNames = ["{name}.#", "{name}-#", "old/{name}.#"],
        };
        await foreach (FollowedBatch batch in new LogFollower(log, options).ReadBatchesAsync(
            10_000, 1024 * 1024, TimeSpan.FromMilliseconds(20)))
        {
            file.Write(Encoding.UTF8.GetBytes(RecordOf(batch, lineLength)));
            await position.SaveAsync(batch);
        }

        return 0;
    }

    /// <summary>Follows logs, and prints each line behind the name of its log, and which logs cannot be read, until it is killed.</summary>
    internal static async Task<int> PrintAsync(IEnumerable<string> logs)
    {
        LogFollowerOptions options = new()
        {
            FollowInterval = TimeSpan.FromMilliseconds(25),
            OnUnreadable = static (path, error) => Console.WriteLine($"{Path.GetFileName(path)} {error.GetType().Name}"),
        };
        await foreach (FollowedLine line in new LogFollower(logs, options).ReadLinesAsync())
        {
            Console.WriteLine($"{Path.GetFileName(line.Path)} {line}");
        }

        return 0;
    }

    private static string RecordOf(FollowedBatch batch, int lineLength)
    {
        StringBuilder record = new("b");
        long first = -1;
        long last = -1;
        foreach (FollowedLine line in batch.Lines)
        {
            bool isWhole = line.HasLineEnd && line.Bytes.Length == lineLength - 1;
            long number = isWhole ? long.Parse(line.Bytes.Span[..NumberLength], CultureInfo.InvariantCulture) : -1;
            if (first >= 0 && (number != last + 1 || line.IsAfterGap))
            {
                record.Append(CultureInfo.InvariantCulture, $"{first}-{last}");
                first = -1;
            }

            if (first < 0)
            {
                record.Append(line.IsAfterGap ? " g" : " ").Append(isWhole ? "" : "t");
                first = number;
            }

            last = number;
        }

        return record.Append(first >= 0 ? string.Create(CultureInfo.InvariantCulture, $"{first}-{last}") : "").Append(";\n").ToString();
    }
}
