using System.Collections;

namespace Pipelines.File;

/// <summary>
/// Lines of one log that <see cref="LogFollower.ReadBatchesAsync"/> has read. There is at least one. <b>Its lines are valid until the next
/// step of the loop</b> and throw then; a <see cref="Copy"/> is valid for ever.
/// </summary>
/// <example>
/// <code>
/// using System.Threading.Channels;
/// using Pipelines.File;
///
/// Channel&lt;FollowedBatch&gt; shipping = Channel.CreateBounded&lt;FollowedBatch&gt;(10);
/// LogFollower follower = new("service.log");
/// await foreach (FollowedBatch batch in follower.ReadBatchesAsync(1000, 1024 * 1024, TimeSpan.FromSeconds(1)))
/// {
///     await shipping.Writer.WriteAsync(batch.Copy());
/// }
/// </code>
/// </example>
public sealed class FollowedBatch
{
    internal FollowedBatch(string path, FollowedLine[] lines, int count, Loan? loan)
    {
        (Path, Checkpoint) = (path, lines[count - 1].Checkpoint);
        Lines = new LineList(lines, count, loan);
    }

    /// <summary>The full path of the log, also while a rotated file of it is read.</summary>
    public string Path { get; }

    /// <summary>
    /// The lines. They and their bytes are valid until the next step of the loop, and throw <see cref="InvalidOperationException"/> then.
    /// </summary>
    public IReadOnlyList<FollowedLine> Lines { get; }

    /// <summary>The position after the last line. Save it after you have used the batch.</summary>
    public FileCheckpoint Checkpoint { get; }

    /// <summary>
    /// Logs of a pattern that have been read to their end and have no file any more, since the last batch: their checkpoints can be
    /// forgotten. <see cref="CheckpointFile.SaveAsync(FollowedBatch, CancellationToken)"/> does. Mostly empty.
    /// </summary>
    public IReadOnlyList<string> GoneLogs { get; internal init; } = [];

    /// <summary>Returns a batch of the same lines that may be kept: their bytes are copied.</summary>
    /// <exception cref="InvalidOperationException">The loop that returned the batch has gone on.</exception>
    public FollowedBatch Copy() => new(Path, [.. Lines.Select(static line => line.Copy())], Lines.Count, null)
    {
        GoneLogs = GoneLogs,
    };

    private sealed class LineList(FollowedLine[] lines, int count, Loan? loan) : IReadOnlyList<FollowedLine>
    {
        private readonly int _number = loan?.Number ?? 0;

        public int Count => count;

        public FollowedLine this[int index]
        {
            get
            {
                Loan.ThrowIfOver(loan, _number);
                ArgumentOutOfRangeException.ThrowIfGreaterThanOrEqual((uint)index, (uint)count, nameof(index));
                return lines[index];
            }
        }

        public IEnumerator<FollowedLine> GetEnumerator() => Enumerable.Range(0, count).Select(i => this[i]).GetEnumerator();

        IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();
    }
}
