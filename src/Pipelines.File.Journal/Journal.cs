using System.Globalization;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>
/// An append-only journal in a folder, for one process that writes and any number of readers. An append completes when its record is on the
/// device; all callers that wait share one sync. After a crash or a power failure every acknowledged record is there, once and in order.
/// </summary>
/// <remarks>
/// <para>Any thread may call any member at any time.</para>
/// <para>After the first error every append throws it; records that were acknowledged before stay. Open the journal again to go on.</para>
/// <para>docs/journal-format.md describes the files.</para>
/// </remarks>
/// <example>
/// <code>
/// using Pipelines.File;
///
/// await using Journal journal = await Journal.OpenAsync("events");
/// long sequence = await journal.AppendAsync("an event"u8.ToArray());
/// await foreach (JournalBatch batch in journal.ReadBatchesAsync(sequence))
/// {
///     foreach (JournalRecord record in batch)
///     {
///         Console.WriteLine($"{record.Sequence}: {record.Span.Length} bytes");
///     }
/// }
/// </code>
/// </example>
public sealed partial class Journal : IAsyncDisposable
{
    private readonly string _folder;
    private readonly JournalOptions _options;
    private readonly SafeFileHandle _fileLock;
    private readonly Guid _id;
    private readonly uint _seed;
    private readonly long _opened;

    // Guards everything below that is neither read-only nor interlocked. Nothing waits under it, and no caller's code runs.
    private readonly Lock _gate = new();

    // The segments, oldest first; the last one is written. Replaced, never changed, so that readers need no lock.
    private volatile SegmentFile[] _segments;

    // When each segment began, for retention.
    private readonly Dictionary<long, DateTimeOffset> _began;

    private SegmentWriter _active;
    private PreparedSegment? _prepared;
    private long _next;
    private uint _crc;
    private Exception? _error;
    private Task? _closing;

    // Set when nothing will be committed any more.
    private volatile bool _isClosed;

    private Journal(string folder, JournalOptions options, SafeFileHandle fileLock, SegmentWriter active, JournalState state)
    {
        _folder = folder;
        _options = options;
        _fileLock = fileLock;
        _active = active;
        _id = active.Header.Id;
        _seed = active.Header.Seed;
        _segments = state.Last is null ? [active.File] : [.. state.Segments.Select(static segment => segment.File)];
        _began = state.Segments.ToDictionary(static segment => segment.File.First, static segment => segment.Header.Created);
        _began[active.File.First] = active.Header.Created;
        _next = _opened = _committed = state.Last?.Next ?? 0;
        _crc = state.Last?.Crc ?? _seed;
        CutBytes = state.Tail.Length;
        JournalMetrics.Add(this);
    }

    /// <summary>The sequence number of the oldest record that the journal has, or that it will have if it is empty.</summary>
    public long FirstSequence => _segments[0].First;

    /// <summary>The sequence number that the next record gets.</summary>
    public long NextSequence => Volatile.Read(ref _next);

    /// <summary>
    /// The number of bytes behind the last whole record that a crash had left, and that opening has cut off. They belong to records that
    /// were never acknowledged.
    /// </summary>
    public long CutBytes { get; }

    /// <summary>What has failed, so that the journal takes no more records; <see langword="null"/> if nothing has.</summary>
    public Exception? Error => Volatile.Read(ref _error);

    internal long Appended => NextSequence - _opened;

    internal long Committed => Volatile.Read(ref _committed) - _opened;

    internal long CommittedBytes => Volatile.Read(ref _committedBytes);

    internal long CommitRounds => Volatile.Read(ref _rounds);

    internal int SegmentCount => _segments.Length;

    /// <summary>
    /// Opens the journal in a folder for writing, or makes one. Checks what is there, and cuts off what a crash has left behind the last
    /// whole record: <see cref="CutBytes"/>.
    /// </summary>
    /// <param name="folder">The folder, which is made if it does not exist. It should have nothing but the journal.</param>
    /// <param name="options">How to write; <see langword="null"/> means the defaults.</param>
    /// <param name="cancellationToken">Ends the opening. The journal is left as it is.</param>
    /// <exception cref="InvalidJournalException">The journal is damaged in a way that no crash explains. Nothing was changed.</exception>
    /// <exception cref="IOException">
    /// The journal is open for writing already, in this process or another one; or a file cannot be read or written.
    /// </exception>
    /// <exception cref="UnauthorizedAccessException">A file or the folder does not permit it.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public static ValueTask<Journal> OpenAsync(
        string folder, JournalOptions? options = null, CancellationToken cancellationToken = default)
    {
        ArgumentException.ThrowIfNullOrEmpty(folder);
        string path = Path.GetFullPath(folder);
        return new ValueTask<Journal>(
            Task.Run(() => OpenAtAsync(path, options ?? JournalOptions.Default, cancellationToken), cancellationToken));
    }

    // On a thread of the pool: it makes calls that wait.
    private static async Task<Journal> OpenAtAsync(string folder, JournalOptions options, CancellationToken cancellationToken)
    {
        JournalFolder.Make(folder);
        SafeFileHandle fileLock = await JournalFolder.LockAsync(folder, cancellationToken).ConfigureAwait(false);
        SegmentWriter? active = null;
        Journal? journal = null;
        try
        {
            JournalState state = await JournalState.ReadAsync(folder, options.VerifyAllSegments, null, cancellationToken)
                .ConfigureAwait(false);
            System.IO.File.Delete(Path.Combine(folder, JournalFormat.NextName));
            if (state.Last is { } last)
            {
                JournalRecovery.Mend(folder, last, state.Tail);
                active = SegmentWriter.Open(last, options.FlushGuarantee);
            }
            else
            {
                active = await SegmentWriter.CreateAsync(folder, SegmentHeader.OfNew(first: 0), null, options.FlushGuarantee)
                    .ConfigureAwait(false);
            }

            journal = new Journal(folder, options, fileLock, active, state);
            journal.Retain();
            return journal;
        }
        catch
        {
            if (journal is not null)
            {
                JournalMetrics.Remove(journal);
            }

            if (active is not null)
            {
                await active.AbortAsync().ConfigureAwait(false);
            }

            fileLock.Dispose();
            throw;
        }
    }

    /// <summary>Says in one line how the journal is, for a health check.</summary>
    public override string ToString()
        => string.Create(
            CultureInfo.InvariantCulture,
            $"{(Error is { } error ? $"failed: {error.Message}" : _closing is null ? "healthy" : "closed")}; records {FirstSequence} to "
            + $"{Volatile.Read(ref _committed) - 1} are committed, {NextSequence - Volatile.Read(ref _committed)} are waiting, in "
            + $"{SegmentCount} {(SegmentCount == 1 ? "segment" : "segments")}: '{_folder}'");

    /// <summary>
    /// Writes out everything that was appended, puts it on the device, and closes the journal. A reader that follows comes to its end.
    /// Appends that come later throw <see cref="ObjectDisposedException"/>. A journal that has failed is closed when the last call to the
    /// system has ended, however long the device takes: until then the folder is locked, so that no late write meets a new writer.
    /// </summary>
    /// <exception cref="IOException">Something could not be written, and no append has thrown that yet.</exception>
    public async ValueTask DisposeAsync()
    {
        Task closing;
        lock (_gate)
        {
            closing = _closing ??= Task.Run(CloseAsync);
        }

        await closing.ConfigureAwait(false);
    }

    /// <summary>
    /// Removes the segments that have only records before <paramref name="sequence"/>. The segment that is written stays. A reader that has
    /// not read them yet throws <see cref="IOException"/> when it comes to them.
    /// </summary>
    /// <param name="sequence">The number of the first record to keep.</param>
    /// <param name="cancellationToken">Ends the call between two segments.</param>
    /// <exception cref="ObjectDisposedException">The journal is closed.</exception>
    /// <exception cref="IOException">A segment cannot be removed.</exception>
    public async ValueTask TrimBeforeAsync(long sequence, CancellationToken cancellationToken = default)
    {
        ObjectDisposedException.ThrowIf(Volatile.Read(ref _closing) is not null, this);
        await Task.Run(() => RemoveWhile((_, next) => next.First <= sequence, cancellationToken), cancellationToken).ConfigureAwait(false);
    }

    private async Task CloseAsync()
    {
        try
        {
            await DrainAsync().ConfigureAwait(false);
            if (Error is null)
            {
                await SealAsync().ConfigureAwait(false);

                // The appends that wait for their flushes complete later than a reader may ask.
                Raise(ref _committed, NextSequence);
                Raise(ref _committedBytes, _appendedBytes);
            }
            else
            {
                await _active.AbortAsync().ConfigureAwait(false);
            }

            if (_prepared is { } prepared)
            {
                await prepared.DeleteAsync().ConfigureAwait(false);
            }
        }
        catch (Exception e)
        {
            bool isTold = Error is not null;
            IOException error = Fail(e);
            await _active.AbortAsync().ConfigureAwait(false);
            if (_prepared is { } prepared)
            {
                // The next start removes its file.
                (await prepared.TakeAsync().ConfigureAwait(false)).Handle?.Dispose();
            }

            if (!isTold)
            {
                throw error;
            }
        }
        finally
        {
            JournalMetrics.Remove(this);
            _isClosed = true;
            SignalCommitted();
            lock (_removing)
            {
                // A trim that is under way ends first: the next writer must not lose segments while it opens the journal.
                _isRemovingOver = true;
            }

            _fileLock.Dispose();
        }
    }

    /// <summary>Ends the last segment with a statement, so that damage of the last records is told apart from a crash.</summary>
    private async Task SealAsync()
    {
        await _active.FlushAsync(FlushGuarantee.Durable).ConfigureAwait(false);
        _active.WriteStatement(_crc, _next);
        await _active.FlushAsync(FlushGuarantee.Durable).ConfigureAwait(false);
        await _active.CompleteAsync().ConfigureAwait(false);
    }
}
