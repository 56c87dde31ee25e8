using System.Diagnostics.CodeAnalysis;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;
using Pipelines.File.Waiting;

namespace Pipelines.File;

/// <summary>
/// A <see cref="PipeWriter"/> that writes a file without a <see cref="FileStream"/>: a flush returns at once, and another thread writes what has gathered, in order, in few large
/// writes. Only when more waits to be written than <see cref="FilePipeWriterOptions.PauseWriterThreshold"/> allows, a flush waits for it.
/// </summary>
/// <remarks>
/// <para>One caller uses it at a time; a second call meanwhile throws <see cref="InvalidOperationException"/> and changes nothing. <see cref="CancelPendingFlush"/>, <see cref="Complete"/> and
/// <see cref="Abort"/> may come from any thread, and several flushes may be pending.</para>
/// <para>The first write that fails is thrown, with the path, by the pending and every later flush and by <see cref="CompleteAsync"/>; nothing after the failed byte is
/// written, so the file holds an unbroken prefix. A flush that is canceled ends the wait only: its bytes are written exactly once.</para>
/// </remarks>
public sealed class FilePipeWriter : PipeWriter, ICountsOwner, IDisposable, IAsyncDisposable
{
    /// <summary>Bytes that one WriteAsync takes in before it looks at the thresholds.</summary>
    private const int MaxUnpacedWrite = 1024 * 1024;

    private static readonly Action<object?, CancellationToken> s_onTokenCanceled = static (state, token) => ((FilePipeWriter)state!).OnTokenCanceled(token);

    private readonly FilePipeWriterOptions _options;
    private readonly WriterFile _file;

    // The lock guards of it what WriteQueue says.
    private readonly WriteQueue _queue;
    private readonly PendingFlushes _flushes;

    // The lock, which guards every field below but the first.
    private readonly Drain _drain;

    private CallsUnderWay _calls;

    // The task of all flushes after a failure, which throws the error each time as it was, without the traces of the earlier calls.
    private Task<FlushResult>? _failedFlush;
    private bool _cancelRequested;
    private bool _isCompleted;
    private bool _isReleased;

    // Whoever awaits CompleteAsync while the drain runs.
    private TaskCompletionSource? _released;

    private FilePipeWriter(WriterFile file, FilePipeWriterOptions options)
    {
        _options = options;
        _file = file;
        _flushes = new PendingFlushes(this);

        // Where one call writes one segment only, small segments would make small writes.
        FileBackend backend = file.Backend;
        int maxSegments = backend.MaxBuffersPerOperation;
        int segmentSize = maxSegments > 1 ? options.MinimumBufferSize : Math.Max(options.MinimumBufferSize, FilePipeWriterOptions.DefaultMinimumBufferSize);
        _queue = new WriteQueue(options.Pool, segmentSize, maxSegments, backend.LargestWriteSegment, keepsFlushesWhole: backend.Appends || backend.SharesPosition);
        _drain = new Drain(this, file, _queue, _flushes);
    }

    /// <summary>
    /// The file offset, in bytes, behind everything that was flushed so far; after a failure or <see cref="Abort"/>, behind everything that was written. A file that cannot
    /// seek counts from 0. A file that others append to as well: behind this writer's own bytes, as far as the system tells where it has put them (after each write on Linux; elsewhere
    /// as if nobody else wrote).
    /// </summary>
    public long Position
    {
        get
        {
            lock (_drain)
            {
                return _file.Offset + (_drain is { Error: null, IsAborted: false } ? _queue.Flushed : _queue.Written);
            }
        }
    }

    /// <summary>How the system is asked to write: what <see cref="FilePipeBackend.Auto"/> has chosen.</summary>
    public FilePipeBackend Backend => _file.Backend.Kind;

    /// <inheritdoc/>
    public override bool CanGetUnflushedBytes => true;

    /// <summary>Bytes that the writer has taken (<see cref="Advance"/>) and no flush has covered yet; 0 after the writer is completed.</summary>
    public override long UnflushedBytes => Volatile.Read(ref _isCompleted) ? 0 : _queue.Advanced - _queue.Flushed;

    internal FileBackend FileBackend => _file.Backend;

    /// <summary>Whether segments come from a caller's memory pool, whose code runs where they are given back.</summary>
    internal bool HasCallersPool => _options.Pool is not null;

    /// <summary>Whether no more bytes are taken.</summary>
    internal bool IsCompleted => Volatile.Read(ref _isCompleted);

    /// <summary>Opens or makes a file and puts a writer on it, which closes it when it is completed.</summary>
    /// <param name="path">The file: absolute, or relative to the current directory. FIFOs and devices work.</param>
    /// <param name="options">How to write; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentException">
    /// <paramref name="path"/> is empty or <see langword="null"/>, <see cref="FilePipeWriterOptions.PreallocationSize"/> goes with a mode that makes no file, or <see cref="FilePipeWriterOptions.Offset"/> with
    /// one that empties it or appends.
    /// </exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="FileNotFoundException">There is no such file, and the mode makes none.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder on the way to it.</exception>
    /// <exception cref="UnauthorizedAccessException">The caller may not write it, or it is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeWriterOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    /// <exception cref="FileExistsException">With <see cref="FilePipeWriterOptions.Replace"/> and <see cref="FileMode.CreateNew"/>: there is a file of that name.</exception>
    /// <exception cref="IOException">Opening it failed otherwise: it exists already, another process has it open, the disk has no room to preallocate.</exception>
    public static FilePipeWriter Create(string path, FilePipeWriterOptions? options = null)
        => new(WriterFile.Open(path, options ??= FilePipeWriterOptions.Default), options);

    /// <summary>
    /// As <see cref="Create(string, FilePipeWriterOptions?)"/>, without holding up the caller: the file is opened by a thread of the library's own. A FIFO waits for its other side without
    /// a thread.
    /// </summary>
    /// <param name="path">The file: absolute, or relative to the current directory of this moment.</param>
    /// <param name="options">How to write; <see langword="null"/> for the defaults.</param>
    /// <param name="cancellationToken">Ends the wait at once; a file that is opened all the same is closed again.</param>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <inheritdoc cref="Create(string, FilePipeWriterOptions?)" path="/exception"/>
    public static ValueTask<FilePipeWriter> OpenAsync(string path, FilePipeWriterOptions? options = null, CancellationToken cancellationToken = default)
    {
        options ??= FilePipeWriterOptions.Default;
        options.Validate();
        ArgumentException.ThrowIfNullOrEmpty(path);
        FileBackends.ThrowIfNotSupported(options.Backend);
        string fullPath = Path.GetFullPath(path);
        FifoOpening? fifo = !options.Replace && options.Mode != FileMode.CreateNew && options.PreallocationSize == 0 && FifoOpening.IsSupported(options.Backend, options.Share, options.FileOptions) ? new FifoOpening(fullPath, FileAccess.Write, options.Share) : null;
        return PendingOpen<FilePipeWriter>.StartAsync(
            fullPath,
            fifo,
            handle => handle is null ? Create(fullPath, options) : Create(FileBackends.OpenFifo(options.Backend, handle, fullPath), options, leaveOpen: false, isOpenedByPath: true),
            static opened => opened.Abort(),
            cancellationToken);
    }

    /// <summary>
    /// Puts a writer on an open file, which it closes when it is completed unless <see cref="FilePipeWriterOptions.LeaveOpen"/> says otherwise. Where this throws,
    /// the file stays open.
    /// </summary>
    /// <param name="handle">The file, open for writing. A file that can seek is written from <see cref="FilePipeWriterOptions.Offset"/>, wherever its own position is.</param>
    /// <param name="options">How to write; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException">
    /// <paramref name="handle"/> is invalid, an option is set that is for paths, or <see cref="FilePipeWriterOptions.Offset"/> with a handle that appends.
    /// </exception>
    /// <exception cref="ObjectDisposedException"><paramref name="handle"/> is closed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeWriterOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    public static FilePipeWriter Create(SafeFileHandle handle, FilePipeWriterOptions? options = null)
        => new(WriterFile.Attach(handle, options ??= FilePipeWriterOptions.Default), options);

    /// <summary>
    /// Puts a writer on the standard output of this process, which may be a file, a pipe, a terminal or a socket. It writes where the shell has left off, or appends where the shell
    /// appends (<c>&gt;&gt;</c>), so that <c>(echo header; program) &gt; file</c> keeps both; it never closes it.
    /// </summary>
    /// <remarks>Not the same as <c>FilePipeWriter.Create("/dev/stdout")</c>, which opens the file behind it anew, and empties it. <see cref="Console"/> has no part in it: flush what you have written there first.</remarks>
    /// <param name="options">How to write; <see langword="null"/> for the defaults. What is for a path, and <see cref="FilePipeWriterOptions.Offset"/>, cannot be set.</param>
    /// <exception cref="ArgumentException">An option is set that the shell has decided.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    /// <exception cref="IOException">There is no standard output.</exception>
    public static FilePipeWriter OpenStandardOutput(FilePipeWriterOptions? options = null)
        => new(WriterFile.OpenStandardOutput(options ??= FilePipeWriterOptions.Default), options);

    /// <summary>With <see cref="FilePipeWriterOptions.Replace"/>, and other calls than the system's: for tests.</summary>
    internal static FilePipeWriter Create(string path, FilePipeWriterOptions options, object calls) => new(WriterFile.Open(path, options, calls), options);

    internal static FilePipeWriter Create(FileBackend backend, FilePipeWriterOptions options, bool leaveOpen, bool isOpenedByPath)
        => new(WriterFile.Of(backend, options, leaveOpen, isOpenedByPath), options);

    /// <summary>Memory for the next bytes, which <see cref="Advance"/> takes.</summary>
    /// <inheritdoc/>
    /// <param name="sizeHint">The least bytes that are wanted; 0 for whatever there is, never none.</param>
    /// <exception cref="InvalidOperationException">The writer is completed, or another call of it is under way on another thread.</exception>
    public override Memory<byte> GetMemory(int sizeHint = 0)
    {
        _calls.ThrowIfAny();
        return GetRoom(sizeHint);
    }

    /// <inheritdoc cref="GetMemory"/>
    public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

    /// <summary>Takes bytes that were written into the memory of <see cref="GetMemory"/> or <see cref="GetSpan"/>. They go to the file with the next flush.</summary>
    /// <param name="bytes">How many.</param>
    /// <exception cref="ArgumentOutOfRangeException">It is negative, or more than there is left of that memory. Nothing has changed.</exception>
    /// <exception cref="InvalidOperationException">Another call of the writer is under way on another thread. Nothing has changed.</exception>
    public override void Advance(int bytes)
    {
        _calls.ThrowIfAny();
        AdvanceRoom(bytes);
    }

    /// <summary>
    /// Has everything written that the writer has taken so far, and completes when <see cref="FilePipeWriterOptions.FlushGuarantee"/> holds for it: by default at once, while less
    /// than <see cref="FilePipeWriterOptions.PauseWriterThreshold"/> bytes wait to be written.
    /// </summary>
    /// <param name="cancellationToken">Ends the wait, not the writing.</param>
    /// <exception cref="InvalidOperationException">The writer is completed, or another call of it is under way.</exception>
    /// <exception cref="IOException">A write has failed, now or earlier.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled, or <see cref="Abort"/> came.</exception>
    public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default) => FlushAsExactlyAsync(_options.FlushGuarantee, cancellationToken);

    /// <summary>As <see cref="FlushAsync(CancellationToken)"/>, with at least this guarantee for everything so far, whatever the option says.</summary>
    /// <param name="guarantee">What holds when the flush completes.</param>
    /// <param name="cancellationToken">Ends the wait, not the writing.</param>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="guarantee"/> is none.</exception>
    /// <inheritdoc cref="FlushAsync(CancellationToken)"/>
    public ValueTask<FlushResult> FlushAsync(FlushGuarantee guarantee, CancellationToken cancellationToken = default)
    {
        if (guarantee is < FlushGuarantee.WriteBehind or > FlushGuarantee.Durable)
        {
            throw new ArgumentOutOfRangeException(nameof(guarantee), guarantee, "Not a FlushGuarantee.");
        }

        return FlushAsExactlyAsync(guarantee > _options.FlushGuarantee ? guarantee : _options.FlushGuarantee, cancellationToken);
    }

    /// <summary>
    /// Copies <paramref name="source"/> and flushes. Canceled or not, its bytes are in the writer from here on, and are written exactly once.
    /// </summary>
    /// <inheritdoc cref="FlushAsync(CancellationToken)"/>
    /// <param name="source">The bytes.</param>
    /// <param name="cancellationToken">Ends the wait, not the writing.</param>
    public override ValueTask<FlushResult> WriteAsync(ReadOnlyMemory<byte> source, CancellationToken cancellationToken = default)
    {
        _calls.Enter();
        if (source.Length > MaxUnpacedWrite)
        {
            return WritePacedAsync(source, cancellationToken);
        }

        try
        {
            Copy(source.Span);
            return FlushCoreAsync(_options.FlushGuarantee, cancellationToken);
        }
        finally
        {
            _calls.Leave();
        }
    }

    /// <summary>Makes the pending flushes, or else the next one, return at once with <see cref="FlushResult.IsCanceled"/>. What they flushed is written all the same.</summary>
    public override void CancelPendingFlush()
    {
        PooledCompletion<FlushResult>? canceled;
        lock (_drain)
        {
            canceled = _flushes.TakeAll();
            _cancelRequested = canceled is null;
        }

        PendingFlushes.Complete(canceled, new FlushResult(isCanceled: true, isCompleted: false), null, now: true);
    }

    /// <summary>
    /// Writes out everything, closes the file, and throws if any byte could not be written. Blocks until then: prefer <see cref="CompleteAsync"/>.
    /// </summary>
    /// <param name="exception">Anything but <see langword="null"/> drops what was not flushed; what was flushed is written all the same. <see cref="Abort"/> drops that, too.</param>
    /// <exception cref="IOException">A write has failed, now or earlier. The file is closed.</exception>
    /// <exception cref="OperationCanceledException"><see cref="Abort"/> came meanwhile.</exception>
    public override void Complete(Exception? exception = null)
    {
        bool wasAborted = BeginComplete(exception, mayWait: true);
        lock (_drain)
        {
            while (!_isReleased && !(_drain.IsAborted && !_file.Backend.EndsWrites))
            {
                Monitor.Wait(_drain);
            }
        }

        RecordCounts();
        ThrowIfNotWhole(wasAborted);
    }

    /// <summary>Writes out everything, closes the file, and throws if any byte could not be written.</summary>
    /// <inheritdoc cref="Complete"/>
    public override async ValueTask CompleteAsync(Exception? exception = null)
    {
        bool wasAborted = BeginComplete(exception, mayWait: false);
        await WaitForReleaseAsync().ConfigureAwait(false);
        RecordCounts();
        ThrowIfNotWhole(wasAborted);
    }

    /// <summary>
    /// Gives up at once: pending flushes, and whoever waits for the writer's completion, get an <see cref="OperationCanceledException"/>, what is not written is dropped,
    /// and the file is closed when the system is done with it. <see cref="CompleteAsync"/> afterwards only waits for that, unless it may never come (a terminal that is stopped,
    /// a pipe of <see cref="FilePipeBackend.Portable"/>). May come from any thread, and does not throw.
    /// </summary>
    public void Abort()
    {
        PooledCompletion<FlushResult>? flushes;
        Cancellation cancellation;
        bool release;
        lock (_drain)
        {
            if (_isReleased || _drain.IsAborted || !_drain.TryAbort(out cancellation))
            {
                return;
            }

            release = _drain.IsIdle && !_isCompleted;
            Volatile.Write(ref _isCompleted, true);
            flushes = _flushes.TakeAll();
            if (!_file.Backend.EndsWrites)
            {
                // What is under way may never end: whoever waits for it goes on.
                Monitor.PulseAll(_drain);
                _released?.TrySetResult();
            }
        }

        try
        {
            cancellation.Request(_file.Backend);
            PendingFlushes.Complete(flushes, default, flushes is null ? null : AbortedException(), now: true);
        }
        finally
        {
            if (release)
            {
                Release();
            }
        }
    }

    /// <summary>
    /// Completes a writer that is not completed; with <see cref="FilePipeWriterOptions.Replace"/> gives up as <see cref="Abort"/> does, so that only
    /// <see cref="CompleteAsync"/> makes the file appear.
    /// </summary>
    /// <inheritdoc cref="Complete"/>
    public void Dispose()
    {
        if (!IsCompleted)
        {
            GiveUpUnfinished();
            Complete();
        }
    }

    /// <inheritdoc cref="Dispose"/>
    public ValueTask DisposeAsync()
    {
        if (IsCompleted)
        {
            return WaitForReleaseAsync();
        }

        GiveUpUnfinished();
        return CompleteAsync();
    }

    void ICountsOwner.RecordCounts() => RecordCounts();

    private void RecordCounts()
    {
        UnrecordedCounts counts;
        lock (_drain)
        {
            counts = _drain.TakeCounts();
        }

        counts.Record();
    }

    /// <summary>Flushes with this guarantee, whatever the option says: for a copy, which asks for the writer's own once, in the end.</summary>
    internal ValueTask<FlushResult> FlushAsExactlyAsync(FlushGuarantee guarantee, CancellationToken cancellationToken)
    {
        _calls.Enter();
        try
        {
            return FlushCoreAsync(guarantee, cancellationToken);
        }
        finally
        {
            _calls.Leave();
        }
    }

    private ValueTask<FlushResult> FlushCoreAsync(FlushGuarantee guarantee, CancellationToken cancellationToken)
    {
        PooledCompletion<FlushResult>? pending = null;
        FileOperation? drain = null;
        FileSegment? freed = null;
        Exception? error;
        bool isCanceled = false;
        bool isCounting;
        lock (_drain)
        {
            ThrowIfCompleted();
            isCounting = _drain.HasCounts;
            _drain.HandOver();
            error = _drain.Error;
            if (error is not null)
            {
                // Nothing after the failed byte is written.
                freed = _queue.DropFlushed();
            }
            else
            {
                isCanceled = _cancelRequested;
                _cancelRequested = false;
                if (!isCanceled && !cancellationToken.IsCancellationRequested && !IsReached(guarantee, out long target))
                {
                    pending = _flushes.Add(target, waitsForSync: guarantee == FlushGuarantee.Durable, cancellationToken);
                }

                drain = _drain.TryBegin();
            }
        }

        if (freed is not null)
        {
            _ = SegmentPool.Shared.Return(freed);
        }

        if (drain is not null)
        {
            _drain.Perform(drain, mayWait: false);
        }

        if (isCounting)
        {
            RecordCounts();
        }

        if (pending is not null)
        {
            if (guarantee == FlushGuarantee.WriteBehind)
            {
                FilePipeMetrics.FlushPaused();
            }

            return pending.EndWith(s_onTokenCanceled, this, cancellationToken);
        }

        return error is not null ? new ValueTask<FlushResult>(Failed(error))
            : isCanceled ? new ValueTask<FlushResult>(new FlushResult(isCanceled: true, isCompleted: false))
            : cancellationToken.IsCancellationRequested ? ValueTask.FromCanceled<FlushResult>(cancellationToken)
            : default;
    }

    /// <inheritdoc cref="CallsUnderWay.BeginCopy"/>
    internal void BeginCopy() => _calls.BeginCopy();

    internal void EndCopy() => _calls.EndCopy();

    /// <summary>
    /// A copy past the writer's own memory begins: no other call may come until <see cref="EndDirect"/>, which is to follow in any case.
    /// </summary>
    /// <exception cref="InvalidOperationException">Another call is under way: <see cref="EndDirect"/> must not follow.</exception>
    internal void BeginDirect()
    {
        _calls.Enter();
        lock (_drain)
        {
            _drain.IsLent = !_isCompleted;
        }
    }

    internal void EndDirect()
    {
        FileOperation? drain;
        bool release;
        lock (_drain)
        {
            // Where the writer was completed meanwhile, its end was left to this.
            bool isLast = _drain.IsLent && _isCompleted;
            _drain.IsLent = false;
            drain = isLast ? _drain.TryBegin() : null;
            release = isLast && _drain.IsIdle;
        }

        _calls.Leave();
        GoOn(drain, release, mayWait: false);
    }

    /// <summary>Has everything written, between <see cref="BeginDirect"/> and <see cref="EndDirect"/>.</summary>
    internal ValueTask<FlushResult> FlushDirectAsync(CancellationToken cancellationToken) => FlushCoreAsync(FlushGuarantee.Written, cancellationToken);

    /// <summary>For a copy past the writer's own memory: that <paramref name="bytes"/> have gone to the file, and the file offset of the next byte. Everything is written.</summary>
    internal long Skip(long bytes)
    {
        FileSegment? freed;
        long position;
        lock (_drain)
        {
            ThrowIfCompleted();
            freed = _queue.Skip(bytes);
            position = _file.Offset + _queue.Written;
        }

        _ = SegmentPool.Shared.Return(freed);
        return position;
    }

    /// <summary>A write so large that the thresholds have to hold within it. The call is under way until the last of its bytes is taken.</summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<FlushResult> WritePacedAsync(ReadOnlyMemory<byte> source, CancellationToken cancellationToken)
    {
        ValueTask<FlushResult> last;
        try
        {
            while (source.Length > MaxUnpacedWrite)
            {
                Copy(source.Span[..MaxUnpacedWrite]);
                source = source[MaxUnpacedWrite..];
                try
                {
                    FlushResult result = await FlushCoreAsync(_options.FlushGuarantee, cancellationToken).ConfigureAwait(false);
                    if (result.IsCanceled)
                    {
                        Copy(source.Span);
                        return result;
                    }
                }
                catch (OperationCanceledException) when (!IsCompleted)
                {
                    // The caller's memory is the caller's again: the rest waits here for the next flush or Complete.
                    Copy(source.Span);
                    throw;
                }
            }

            Copy(source.Span);
            last = FlushCoreAsync(_options.FlushGuarantee, cancellationToken);
        }
        finally
        {
            _calls.Leave();
        }

        return await last.ConfigureAwait(false);
    }

    private void Copy(ReadOnlySpan<byte> source)
    {
        while (source.Length > 0)
        {
            Span<byte> room = GetRoom(0).Span;
            int length = Math.Min(room.Length, source.Length);
            source[..length].CopyTo(room);
            AdvanceRoom(length);
            source = source[length..];
        }
    }

    private Memory<byte> GetRoom(int sizeHint)
        => _queue.TryGetRoom(sizeHint, in _isCompleted, out Memory<byte> room) ? room : MakeRoom(sizeHint);

    private void AdvanceRoom(int bytes)
    {
        // Where Complete or Abort came from elsewhere the memory has gone with them: as with the BCL's writer it is the next call that throws.
        if (!_queue.TryAdvance(bytes, out int room) && !IsCompleted)
        {
            throw new ArgumentOutOfRangeException(nameof(bytes), bytes, bytes < 0
                ? "Advance takes the number of bytes that were written into the memory of GetMemory or GetSpan; it cannot go back."
                : $"Advance was told of more bytes than the {room} that are left of the memory of the last GetMemory or GetSpan. Ask for memory again before more is written into it.");
        }
    }

    private void GiveUpUnfinished()
    {
        if (_file.IsUnfinished)
        {
            Abort();
        }
    }

    /// <summary>A further segment: there is no room, or the writer is completed.</summary>
    private Memory<byte> MakeRoom(int sizeHint)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(sizeHint);
        ThrowIfCompleted();
        FileSegment segment = _queue.Rent(sizeHint, out int moved);
        FileSegment? freed = segment;
        bool isAppended = false;
        lock (_drain)
        {
            if (!_isCompleted && segment.Capacity - moved >= sizeHint)
            {
                freed = _queue.Append(segment, moved);
                isAppended = true;
            }
        }

        _ = SegmentPool.Shared.Return(freed);
        if (!isAppended)
        {
            ThrowIfCompleted();
            throw new InvalidOperationException($"The memory pool has given less than the {sizeHint} bytes that it was asked for.");
        }

        return segment.Buffer[moved..];
    }

    /// <summary>Whether the writer was aborted before; where it is completed already, nothing is begun.</summary>
    private bool BeginComplete(Exception? exception, bool mayWait)
    {
        FileOperation? drain;
        bool release;
        lock (_drain)
        {
            if (_isCompleted)
            {
                return _drain.IsAborted;
            }

            Volatile.Write(ref _isCompleted, true);
            if (exception is null && _file.IsUnfinished && _calls.IsAnyUnderWay())
            {
                // What is there is a part of what was to be: the name is for the whole only.
                _drain.Fail(new InvalidOperationException("The writer was completed while a write or a copy into it was under way, so its file is not whole and has not got its name. Await that first."));
            }
            else if (exception is null)
            {
                _drain.HandOver();
            }

            _drain.Complete(isDurable: _options.FlushGuarantee == FlushGuarantee.Durable, isGivenUp: exception is not null);
            drain = _drain.TryBegin();
            release = _drain.IsIdle;
        }

        GoOn(drain, release, mayWait);
        return false;
    }

    /// <summary>What is left to do of a completed writer, by the one who has found it. With neither it is left to whoever is at the file.</summary>
    private void GoOn(FileOperation? drain, bool release, bool mayWait)
    {
        if (release)
        {
            Release();
        }
        else if (drain is not null)
        {
            _drain.Perform(drain, mayWait);
        }
    }

    private ValueTask WaitForReleaseAsync()
    {
        lock (_drain)
        {
            return _isReleased || (_drain.IsAborted && !_file.Backend.EndsWrites)
                ? default
                : new ValueTask((_released ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously)).Task);
        }
    }

    private void ThrowIfNotWhole(bool wasAborted)
    {
        Exception? error;
        lock (_drain)
        {
            if (_drain.IsAborted && !wasAborted)
            {
                throw AbortedException();
            }

            error = wasAborted ? null : _drain.Error;
        }

        if (error is not null)
        {
            _ = Failed(error).GetAwaiter().GetResult();
        }
    }

    private Task<FlushResult> Failed(Exception error) => _failedFlush ??= Task.FromException<FlushResult>(error);

    /// <summary>Gives memory and file back: called once, by whoever finds the writer completed and the drain idle.</summary>
    internal void Release()
    {
        FileSegment? freed;
        lock (_drain)
        {
            freed = _queue.ReleaseAll();
        }

        Exception? error = SegmentPool.Shared.Return(freed);
        Exception? closing = _drain.Release();
        error ??= closing;
        bool isCounting;
        lock (_drain)
        {
            if (error is not null)
            {
                _drain.Fail(error);
            }

            _isReleased = true;
            Monitor.PulseAll(_drain);
            _released?.TrySetResult();

            // Nobody may come to record them any more.
            isCounting = _drain is { IsAborted: true, HasCounts: true };
        }

        if (isCounting)
        {
            ThreadPool.UnsafeQueueUserWorkItem(static writer => writer.RecordCounts(), this, preferLocal: false);
        }
    }

    private void OnTokenCanceled(CancellationToken token)
    {
        PooledCompletion<FlushResult>? canceled;
        lock (_drain)
        {
            canceled = _flushes.TakeCanceled(token);
        }

        PendingFlushes.Complete(canceled, default, new OperationCanceledException(token), now: true);
    }

    // What follows is called under the lock.

    /// <summary>Whether everything that was flushed is as far as the guarantee asks; else how far the flush waits for it, bytes.</summary>
    private bool IsReached(FlushGuarantee guarantee, out long target)
    {
        target = _queue.Flushed;
        if (guarantee == FlushGuarantee.WriteBehind && _options.PauseWriterThreshold is long pause and > 0)
        {
            bool isReached = target - _queue.Written < pause;
            target -= isReached ? 0 : _options.EffectiveResumeThreshold;
            return isReached;
        }

        return (guarantee == FlushGuarantee.Durable ? _drain.Synced : _queue.Written) >= target;
    }

    private void ThrowIfCompleted()
    {
        if (_isCompleted)
        {
            throw new InvalidOperationException("Writing is not allowed after the writer was completed.");
        }
    }

    private static OperationCanceledException AbortedException() => new("The writer was aborted.");
}
