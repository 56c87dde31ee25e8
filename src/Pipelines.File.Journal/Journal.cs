using System.Diagnostics;
using System.Diagnostics.CodeAnalysis;
using System.Globalization;

namespace Pipelines.File;

/// <summary>
/// An append-only journal in a folder, for one process that writes and any number of readers. An append completes when its record is on the
/// device; all callers that wait share one sync. After a crash or a power failure every acknowledged record is there, once and in order.
/// </summary>
/// <remarks>
/// <para>Any thread may call any member at any time.</para>
/// <para>After the first error every append throws it; records that were acknowledged before stay. <see cref="ReopenAsync"/>, or opening it
/// another time, goes on.</para>
/// <para>docs/journal.md is the guide, and docs/journal-format.md describes the files.</para>
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
public sealed partial class Journal : IAsyncDisposable, IDisposable
{
    /// <summary>
    /// The number to read from for "the oldest record that there is": <c>ReadBatchesAsync(Journal.Oldest)</c>. Any other number of a
    /// record that was removed throws.
    /// </summary>
    public const long Oldest = -1;

    private readonly string _folder;
    private readonly JournalOptions _options;
    private readonly FileLock _fileLock;
    private readonly bool _isZeroed;
    private readonly JournalMeter _meter;

    // Guards everything below that is neither read-only nor interlocked. Nothing waits under it, and no caller's code runs.
    private readonly Lock _gate = new();

    // Who has it changes which segments there are at the old end, or all of them: trims, retention, opening again, backup, closing.
    private readonly SemaphoreSlim _maintenance = new(1, 1);

    // The segments, oldest first; the last one is written. Replaced, never changed, so that readers need no lock.
    private volatile SegmentFile[] _segments = [];

    // Their headers, by the number of the first record.
    private readonly Dictionary<long, SegmentHeader> _headers = [];

    private SegmentWriter _active;
    private PreparedSegment? _prepared;
    private long _next;
    private uint _crc;
    private Exception? _error;
    private Task? _closing;
    private long _opened;

    // Set when nothing will be committed any more.
    private volatile bool _isClosed;

    private Journal(
        string folder, JournalOptions options, FileLock fileLock, bool isZeroed, (SegmentWriter Active, JournalState State) opened)
    {
        _folder = folder;
        _options = options;
        _fileLock = fileLock;
        _isZeroed = isZeroed;
        Id = opened.Active.Header.Id;
        Name = options.Name ?? Path.GetFileName(Path.TrimEndingDirectorySeparator(folder));
        _active = opened.Active;
        BeginLocked(opened.Active, opened.State);
        _meter = JournalMetrics.Add(this);
    }

    /// <summary>The random number of the journal. Another journal in the same folder has another one.</summary>
    public Guid Id { get; }

    /// <summary>The journal's name in metrics and logs: <see cref="JournalOptions.Name"/>, or that of the folder.</summary>
    public string Name { get; }

    /// <summary>The place behind the last committed record.</summary>
    public JournalPosition Position
    {
        get
        {
            lock (_gate)
            {
                long committed = Committed;
                return new JournalPosition(Id, EpochBeforeLocked(committed), committed);
            }
        }
    }

    /// <summary>The sequence number of the oldest record that the journal has, or that it will have if it is empty.</summary>
    public long FirstSequence => _segments[0].First;

    /// <summary>The sequence number that the next record gets.</summary>
    public long NextSequence => Volatile.Read(ref _next);

    /// <summary>
    /// The number of bytes behind the last whole record that a crash had left, and that opening has cut off. They belong to records that
    /// were never acknowledged.
    /// </summary>
    public long CutBytes { get; private set; }

    /// <summary>What has failed, so that the journal takes no more records; <see langword="null"/> if nothing has.</summary>
    public Exception? Error => Volatile.Read(ref _error);

    /// <summary>
    /// What has failed when old segments were last removed; <see langword="null"/> if nothing has. It is tried again when the next segment
    /// begins; appends go on.
    /// </summary>
    public Exception? RetentionError { get; private set; }

    internal JournalOptions Options => _options;

    internal long Committed => _committed.Next;

    internal long CommittedBytes => _committed.Bytes;

    internal int SegmentCount => _segments.Length;

    internal bool IsClosed => _isClosed;

    /// <summary>
    /// Opens the journal in a folder for writing, or makes one. Checks how the segments follow each other and the records of the last one,
    /// and cuts off what a crash has left behind the last whole record: <see cref="CutBytes"/>. Readers check the other records when they
    /// come to them; <see cref="VerifyAsync"/> checks all.
    /// </summary>
    /// <param name="folder">The folder, which is made if it does not exist. It should have nothing but the journal.</param>
    /// <param name="options">How to write; <see langword="null"/> means the defaults. Later changes of it mean nothing.</param>
    /// <param name="cancellationToken">Ends the opening. The journal is left as it is.</param>
    /// <exception cref="InvalidJournalException">The journal is damaged in a way that no crash explains. Nothing was changed.</exception>
    /// <exception cref="IOException">
    /// The journal is open for writing already, in this process or another one; nobody can lock a file in the folder; or a file cannot be
    /// read or written.
    /// </exception>
    /// <exception cref="UnauthorizedAccessException">A file or the folder does not permit it.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public static ValueTask<Journal> OpenAsync(
        string folder, JournalOptions? options = null, CancellationToken cancellationToken = default)
    {
        ArgumentException.ThrowIfNullOrEmpty(folder);
        string path = Path.GetFullPath(folder);
        JournalOptions copy = options is null ? new() : options with { };
        return new ValueTask<Journal>(Task.Run(() => OpenAtAsync(path, copy, cancellationToken), cancellationToken));
    }

    // On a thread of the pool: it makes calls that wait.
    private static async Task<Journal> OpenAtAsync(string folder, JournalOptions options, CancellationToken cancellationToken)
    {
        using Activity? activity = JournalMetrics.Activities.StartActivity("journal open");
        activity?.SetTag("journal.folder", folder);
        JournalFolder.Make(folder);
        FileLock fileLock = await JournalFolder.LockAsync(folder, cancellationToken).ConfigureAwait(false);
        Journal journal;
        try
        {
            bool isZeroed = options.PreallocateSegments && SegmentFile.GainsByZeros(folder);
            (SegmentWriter, JournalState) opened = await RecoverAsync(folder, options, fileLock, isZeroed, cancellationToken)
                .ConfigureAwait(false);
            journal = new Journal(folder, options, fileLock, isZeroed, opened);
        }
        catch
        {
            fileLock.Dispose();
            throw;
        }

        JournalLog.Opened(options.Log, journal.Name, journal.FirstSequence, journal.NextSequence, journal.CutBytes);
        await journal.RetainAsync().ConfigureAwait(false);
        return journal;
    }

    /// <summary>Finds the end of the journal, makes it one that can be written on, and opens or makes the segment there.</summary>
    private static async Task<(SegmentWriter Active, JournalState State)> RecoverAsync(
        string folder, JournalOptions options, FileLock fileLock, bool isZeroed, CancellationToken cancellationToken)
    {
        JournalState state = JournalState.Read(folder, verifyAll: false, null, cancellationToken);
        JournalFolder.ThrowIfNotInPlace(fileLock);
        System.IO.File.Delete(Path.Combine(folder, JournalFormat.NextName));
        if (state.Last is not { } last)
        {
            EndRepair(folder);
            SegmentHeader header = SegmentHeader.OfNew(first: 0);
            return (await SegmentWriter.CreateAsync(
                folder, fileLock, header, null, isZeroed, replaces: false, options.FlushGuarantee).ConfigureAwait(false), state);
        }

        JournalRecovery.Mend(folder, last, state.Tail, cancellationToken);
        bool isRepaired = System.IO.File.Exists(Path.Combine(folder, JournalFormat.RepairName));
        if (!isRepaired && !last.IsContinued)
        {
            return (SegmentWriter.Open(last, isZeroed, options.FlushGuarantee), state);
        }

        if (!isRepaired)
        {
            JournalLog.NewestIsMissing(options.Log, last.File.Path, last.Next);
        }

        // A repair has not come to its end, or the newest segment is missing, as in a copy: numbers are given a second time.
        SegmentWriter next = await BeginEpochAsync(folder, fileLock, last, isZeroed, options.FlushGuarantee).ConfigureAwait(false);
        return (next, state);
    }

    /// <summary>Takes what opening has found. Called when nothing else uses the journal, or under the lock.</summary>
    [MemberNotNull(nameof(_committed))]
    private void BeginLocked(SegmentWriter active, JournalState state)
    {
        _active = active;
        _headers.Clear();
        foreach ((SegmentFile file, SegmentHeader header) in state.Segments)
        {
            _headers[file.First] = header;
        }

        _headers[active.File.First] = active.Header;
        _segments = [.. state.Segments.Select(static segment => segment.File).Where(file => file.First != active.File.First), active.File];
        _next = _opened = state.Last?.Next ?? 0;
        _crc = state.Last is { } last && last.Header == active.Header ? last.Crc : active.Header.Previous;
        CutBytes = state.Tail.Length;
        _sealedBefore = active.File.First;
        _committed = new CommitProgress(_next, _appendedBytes);
    }

    /// <summary>The epoch of the record before this number.</summary>
    private long EpochBeforeLocked(long sequence)
    {
        SegmentFile? segment = _segments.LastOrDefault(segment => segment.First < sequence);
        return segment is null ? _headers[_segments[0].First].EpochBefore : _headers[segment.First].Epoch;
    }

    /// <summary>
    /// Goes on after an error, for example when a full device has room again, without another object: does what
    /// <see cref="OpenAsync"/> does, and keeps the lock meanwhile. Does nothing if nothing has failed. Records that were not acknowledged
    /// may be there afterwards, or not.
    /// </summary>
    /// <param name="cancellationToken">Ends it; the journal stays as it is.</param>
    /// <exception cref="ObjectDisposedException">The journal is closed.</exception>
    /// <exception cref="InvalidJournalException">The journal is damaged in a way that no crash explains.</exception>
    /// <exception cref="IOException">The cause has not gone: the journal has failed as before.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public async ValueTask ReopenAsync(CancellationToken cancellationToken = default)
    {
        await _maintenance.WaitAsync(cancellationToken).ConfigureAwait(false);
        try
        {
            ObjectDisposedException.ThrowIf(Volatile.Read(ref _closing) is not null, this);
            if (Error is null)
            {
                return;
            }

            await Task.Run(() => ReopenLockedAsync(cancellationToken), cancellationToken).ConfigureAwait(false);
        }
        finally
        {
            _maintenance.Release();
        }

        JournalLog.Reopened(_options.Log, Name, NextSequence);
        await RetainAsync().ConfigureAwait(false);
    }

    private async Task ReopenLockedAsync(CancellationToken cancellationToken)
    {
        // What has failed ends first, however long the device takes: no late write meets the new writer.
        await Task.WhenAll(_rolling, _addingZeros).ConfigureAwait(false);
        await _active.AbortAsync().ConfigureAwait(false);
        if (_prepared is { } prepared)
        {
            (await prepared.TakeAsync().ConfigureAwait(false)).Handle?.Dispose();
            _prepared = null;
        }

        (SegmentWriter Active, JournalState State) opened = await RecoverAsync(
            _folder, _options, _fileLock, _isZeroed, cancellationToken).ConfigureAwait(false);
        lock (_gate)
        {
            if (_closing is null && opened.Active.Header.Id == Id)
            {
                BeginLocked(opened.Active, opened.State);
                _isRolling = _isAddingZeros = false;
                Volatile.Write(ref _error, null);
                return;
            }
        }

        await opened.Active.AbortAsync().ConfigureAwait(false);
        ObjectDisposedException.ThrowIf(_closing is not null, this);
        throw new JournalChangedException($"Another journal is in the folder: '{_folder}'");
    }

    /// <summary>Says in one line how the journal is, for a health check.</summary>
    public override string ToString()
        => string.Create(
            CultureInfo.InvariantCulture,
            $"{(Error is { } error ? $"failed: {error.Message}" : _closing is null ? "healthy" : "closed")}; records {FirstSequence} to "
            + $"{Committed - 1} are committed, {NextSequence - Committed} are waiting, in "
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

    /// <summary>Does what <see cref="DisposeAsync"/> does, and blocks until then.</summary>
    /// <exception cref="IOException">Something could not be written, and no append has thrown that yet.</exception>
    public void Dispose() => DisposeAsync().AsTask().GetAwaiter().GetResult();

    private async Task CloseAsync()
    {
        // A trim that is under way ends first: the next writer must not lose segments while it opens the journal.
        await _maintenance.WaitAsync().ConfigureAwait(false);
        try
        {
            await CloseFilesAsync().ConfigureAwait(false);
        }
        finally
        {
            JournalMetrics.Remove(_meter);
            _isClosed = true;
            SignalCommitted();
            _maintenance.Release();
            _fileLock.Dispose();
            JournalLog.Closed(_options.Log, Name, NextSequence);
        }
    }

    private async Task CloseFilesAsync()
    {
        try
        {
            await DrainAsync().ConfigureAwait(false);
            if (Error is null)
            {
                await SealAsync().ConfigureAwait(false);

                // The appends that wait for their flushes complete later than a reader may ask.
                _committed.Raise(NextSequence, _appendedBytes);
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
    }

    /// <summary>Ends the last segment with a statement, so that damage of the last records is told apart from a crash.</summary>
    private async Task SealAsync()
    {
        await _active.FlushAsync(FlushGuarantee.Durable).ConfigureAwait(false);
        _active.WriteStatement(_crc, _next, isContinued: false);
        await _active.FlushAsync(FlushGuarantee.Durable).ConfigureAwait(false);
        await _active.CompleteAsync().ConfigureAwait(false);
    }
}
