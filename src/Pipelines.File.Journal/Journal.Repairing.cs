using System.Globalization;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <content>Verifies a journal, and repairs one.</content>
public sealed partial class Journal
{
    /// <summary>Reads and checks every record. Changes nothing, and may run while a process writes the journal.</summary>
    /// <param name="folder">The journal's folder.</param>
    /// <param name="progress">Gets how far it has come; called by several threads.</param>
    /// <param name="cancellationToken">Ends it.</param>
    /// <exception cref="InvalidJournalException">The journal is damaged in a way that no crash explains.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder.</exception>
    /// <exception cref="IOException">A file cannot be read.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public static ValueTask<JournalSummary> VerifyAsync(
        string folder, IProgress<JournalProgress>? progress = null, CancellationToken cancellationToken = default)
    {
        ArgumentException.ThrowIfNullOrEmpty(folder);
        string path = Path.GetFullPath(folder);
        return new ValueTask<JournalSummary>(Task.Run(() => VerifyAt(path, progress, cancellationToken), cancellationToken));
    }

    /// <summary>
    /// Cuts a damaged journal before the first record that cannot be read, so that it can be opened again. The segments are copied or moved
    /// into a folder beside the journal first: <see cref="JournalRepair.SavedIn"/>. What is appended then has another epoch: readers and
    /// consumers that have read farther get <see cref="JournalChangedException"/>. If the first segment's header is damaged, nothing is
    /// left, and the next record gets the number of that segment in a journal with another <see cref="Id"/>.
    /// </summary>
    /// <param name="folder">The journal's folder.</param>
    /// <param name="progress">Gets how far it has come; called by several threads, and from the beginning after each cut.</param>
    /// <param name="cancellationToken">Ends it.</param>
    /// <exception cref="IOException">A process writes the journal, or a file cannot be read or written.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public static ValueTask<JournalRepair> RepairAsync(
        string folder, IProgress<JournalProgress>? progress = null, CancellationToken cancellationToken = default)
    {
        ArgumentException.ThrowIfNullOrEmpty(folder);
        string path = Path.GetFullPath(folder);
        return new ValueTask<JournalRepair>(Task.Run(() => RepairAtAsync(path, progress, cancellationToken), cancellationToken));
    }

    private static JournalSummary VerifyAt(string folder, IProgress<JournalProgress>? progress, CancellationToken cancellationToken)
    {
        while (true)
        {
            SegmentFile? oldest = SegmentFile.In(folder).FirstOrDefault();
            try
            {
                return Summary(JournalState.Read(folder, verifyAll: true, progress, cancellationToken));
            }
            catch (FileNotFoundException) when (SegmentFile.In(folder).FirstOrDefault() != oldest)
            {
                // The process that writes has removed segments meanwhile.
            }
        }
    }

    private static async Task<JournalRepair> RepairAtAsync(
        string folder, IProgress<JournalProgress>? progress, CancellationToken cancellationToken)
    {
        using FileLock fileLock = await JournalFolder.LockAsync(folder, cancellationToken).ConfigureAwait(false);
        InvalidJournalException? damage = null;
        InvalidJournalException? last = null;
        string? saved = null;
        long cut = 0;
        while (true)
        {
            try
            {
                JournalState state = JournalState.Read(folder, verifyAll: true, progress, cancellationToken);
                if (state.Last is { } end && System.IO.File.Exists(Path.Combine(folder, JournalFormat.RepairName)))
                {
                    JournalRecovery.Mend(folder, end, state.Tail, cancellationToken);
                    SegmentWriter next = await BeginEpochAsync(
                        folder, fileLock, end, isZeroed: false, FlushGuarantee.Durable).ConfigureAwait(false);
                    await next.CompleteAsync().ConfigureAwait(false);
                    state = JournalState.Read(folder, verifyAll: true, null, cancellationToken);
                }

                return new JournalRepair(Summary(state), damage, cut, saved);
            }
            catch (InvalidJournalException e)
            {
                damage ??= e;
                if (e.Path == last?.Path && e.Offset == last?.Offset)
                {
                    // Windows keeps the name of a file that was deleted until everybody has closed it.
                    throw new IOException(
                        $"The damage cannot be cut off. Close what has the segment open, and repair again: '{e.Path}'", e);
                }

                last = e;
                if (saved is null)
                {
                    string time = DateTime.UtcNow.ToString("yyyyMMdd-HHmmss-fff", CultureInfo.InvariantCulture);
                    JournalFolder.Make(saved = Path.TrimEndingDirectorySeparator(folder) + ".damaged-" + time);
                }

                cut += await CutAsync(folder, e, saved, fileLock).ConfigureAwait(false);
            }
        }
    }

    /// <summary>
    /// Begins a segment behind the last record, from which on numbers may be those of records that were there before: it has an epoch of
    /// its own. Only then the repair is over.
    /// </summary>
    private static async ValueTask<SegmentWriter> BeginEpochAsync(
        string folder, FileLock fileLock, SegmentState last, bool isZeroed, FlushGuarantee guarantee)
    {
        System.IO.File.Delete(Path.Combine(folder, JournalFormat.NextName));
        SegmentHeader header = SegmentHeader.After(last.Header, last.Next, last.Crc, SegmentHeader.NewEpoch());
        SegmentWriter segment = await SegmentWriter.CreateAsync(
            folder, fileLock, header, null, isZeroed, replaces: header.First == last.Header.First, guarantee).ConfigureAwait(false);
        EndRepair(folder);
        return segment;
    }

    private static void EndRepair(string folder)
    {
        System.IO.File.Delete(Path.Combine(folder, JournalFormat.RepairName));
        FileSync.FlushFolder(folder);
    }

    /// <summary>
    /// Begins a journal of which nothing is left, in place of the segment with that number: it is there all the time, so that a number that
    /// a trimmed record had is not used again if the repair does not come to its end.
    /// </summary>
    private static async ValueTask BeginAtAsync(string folder, FileLock fileLock, long first)
    {
        System.IO.File.Delete(Path.Combine(folder, JournalFormat.NextName));
        SegmentWriter segment = await SegmentWriter.CreateAsync(
            folder, fileLock, SegmentHeader.OfNew(first), null, isZeroed: false, replaces: true, FlushGuarantee.Durable)
            .ConfigureAwait(false);
        await segment.CompleteAsync().ConfigureAwait(false);
        EndRepair(folder);
    }

    private static JournalSummary Summary(JournalState state)
        => state.Last is not { } last ? new JournalSummary(0, 0, 0, 0, 0)
            : new JournalSummary(state.Segments.Count, state.Segments[0].File.First, last.Next, state.Bytes, state.Tail.Length);

    /// <summary>Cuts off the damaged segment at the damage, and moves all later ones away. Returns how many bytes that were.</summary>
    private static async ValueTask<long> CutAsync(string folder, InvalidJournalException damage, string saved, FileLock fileLock)
    {
        JournalFolder.ThrowIfNotInPlace(fileLock);

        // Before anything is cut: a repair that is killed half way must not leave a journal that looks as if nothing had been there.
        string mark = Path.Combine(folder, JournalFormat.RepairName);
        System.IO.File.WriteAllBytes(mark, []);
        SegmentFile.Sync(mark);
        FileSync.FlushFolder(folder);

        // The damaged one first: without those behind it, it may look like the end that a crash leaves, which the next opening cuts.
        Save(damage.Path!, saved);
        long cut = 0;
        SegmentFile[] segments = SegmentFile.In(folder);
        foreach (SegmentFile segment in segments.Reverse())
        {
            bool isDamaged = segment.Path == damage.Path;
            long kept = isDamaged && damage.Offset >= JournalFormat.HeaderLength ? damage.Offset : 0;
            long length = new FileInfo(segment.Path).Length;
            if (!isDamaged)
            {
                Save(segment.Path, saved);
            }

            cut += length - kept;
            if (kept > 0)
            {
                using SafeFileHandle handle = System.IO.File.OpenHandle(
                    segment.Path, FileMode.Open, FileAccess.ReadWrite, SegmentFile.Share);
                RandomAccess.SetLength(handle, kept);
                FileSync.Flush(handle);
            }
            else if (segment == segments[0])
            {
                await BeginAtAsync(folder, fileLock, segment.First).ConfigureAwait(false);
            }
            else
            {
                System.IO.File.Delete(segment.Path);
                FileSync.FlushFolder(folder);
            }

            if (isDamaged)
            {
                break;
            }
        }

        return cut;
    }

    private static void Save(string path, string saved)
    {
        string copy = Path.Combine(saved, Path.GetFileName(path));
        System.IO.File.Copy(path, copy, overwrite: true);
        SegmentFile.Sync(copy);
        FileSync.FlushFolder(saved);
    }
}
