namespace Pipelines.File;

/// <summary>
/// Reads the journal in a folder, also while another process writes it. It returns only records that are on the device: a later record says
/// so, or else the reader syncs the file itself.
/// </summary>
/// <remarks>
/// After a failed sync of the process that writes, it may return records that were never acknowledged and that are on the device only when
/// the journal was opened again: Linux does not report the error to a descriptor that is opened later (fsync(2)).
/// <see cref="Journal.ReadBatchesAsync(long, bool, CancellationToken)"/> never does.
/// </remarks>
/// <example>
/// <code>
/// using Pipelines.File;
///
/// await foreach (JournalBatch batch in JournalReader.Open("events").ReadBatchesAsync(follow: true))
/// {
///     foreach (JournalRecord record in batch)
///     {
///         Console.WriteLine(record.Sequence);
///     }
/// }
/// </code>
/// </example>
public sealed class JournalReader
{
    internal static TimeSpan DefaultInterval { get; } = TimeSpan.FromMilliseconds(10);

    private readonly string _folder;
    private readonly TimeSpan _interval;

    private JournalReader(string folder, TimeSpan interval)
    {
        _folder = folder;
        _interval = interval;
    }

    /// <summary>Returns a reader for the journal in a folder. Nothing is opened yet.</summary>
    /// <param name="folder">The folder. It may be empty as yet.</param>
    /// <param name="followInterval">
    /// How often a reader that follows polls for new records; <see langword="null"/> means every 10 milliseconds. It holds no thread.
    /// When a hundred polls have found nothing, it polls ten times less often.
    /// </param>
    /// <exception cref="DirectoryNotFoundException">There is no such folder.</exception>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="followInterval"/> is not longer than 0.</exception>
    public static JournalReader Open(string folder, TimeSpan? followInterval = null)
    {
        ArgumentException.ThrowIfNullOrEmpty(folder);
        TimeSpan interval = followInterval ?? DefaultInterval;
        ArgumentOutOfRangeException.ThrowIfLessThanOrEqual(interval, TimeSpan.Zero, nameof(followInterval));
        folder = Path.GetFullPath(folder);
        return Directory.Exists(folder) ? new JournalReader(folder, interval)
            : throw new DirectoryNotFoundException($"There is no such folder: '{folder}'");
    }

    /// <summary>Reads records in order, in batches.</summary>
    /// <param name="from">
    /// The sequence number of the first record; <see cref="Journal.Oldest"/>: of the oldest one that there is.
    /// </param>
    /// <param name="follow">Whether to wait at the end for more, without a thread and without an end.</param>
    /// <param name="cancellationToken">Ends the wait.</param>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <paramref name="from"/> is less than <see cref="Journal.Oldest"/>, or, which the first step reports, beyond the journal's end.
    /// </exception>
    /// <exception cref="JournalRecordsRemovedException">Records were removed before they were read, or the first one was.</exception>
    /// <exception cref="JournalChangedException">The journal was repaired, or made anew, and does not have what was read.</exception>
    /// <exception cref="InvalidJournalException">A record that was on the device is damaged.</exception>
    /// <exception cref="IOException">A file cannot be read.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public IAsyncEnumerable<JournalBatch> ReadBatchesAsync(
        long from = 0, bool follow = false, CancellationToken cancellationToken = default)
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(from, Journal.Oldest);
        return JournalCursor.ReadAsync(new FolderSource(_folder, _interval), from, null, follow, cancellationToken);
    }

    /// <summary>Reads on from a place, if what was read before it is still there.</summary>
    /// <param name="from">The place: <see cref="JournalBatch.Position"/>, or what its text was parsed to.</param>
    /// <param name="follow">As above.</param>
    /// <param name="cancellationToken">Ends the wait.</param>
    /// <inheritdoc cref="ReadBatchesAsync(long, bool, CancellationToken)" path="/exception"/>
    public IAsyncEnumerable<JournalBatch> ReadBatchesAsync(
        JournalPosition from, bool follow = false, CancellationToken cancellationToken = default)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(from.Sequence, nameof(from));
        return JournalCursor.ReadAsync(new FolderSource(_folder, _interval), from.Sequence, from, follow, cancellationToken);
    }
}
