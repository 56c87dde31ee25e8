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
public sealed class FilePipeWriter : PipeWriter, IFileOperationOwner, ICountsOwner, IDisposable, IAsyncDisposable
{
    /// <summary>Bytes that one write takes at most. Chosen by measurement: docs/tuning.md.</summary>
    internal const int BytesPerWrite = 512 * 1024;

    /// <summary>Bytes that one WriteAsync takes in before it looks at the thresholds.</summary>
    private const int MaxUnpacedWrite = 1024 * 1024;

    private static readonly Action<object?, CancellationToken> s_onTokenCanceled = static (state, token) => ((FilePipeWriter)state!).OnTokenCanceled(token);

    private readonly FileBackend _backend;
    private readonly FilePipeWriterOptions _options;
    private readonly bool _leaveOpen;
    private readonly bool _isOpenedByPath;

    // Interlocked: 1 while a call of the caller's that takes bytes or flushes them is under way, so that a second one at once is told, and changes nothing.
    private int _isInCall;

    // Interlocked: copies into this writer that are under way, from one of their writes to the next.
    private int _copiesUnderWay;

    // With Replace: what gives the file its name in the end.
    private readonly UnfinishedFile? _unfinished;

    // Guards every field below. Nothing is called under it that waits or that runs a caller's code, a caller's memory pool included.
    private readonly object _lock = new();

    // The file offset of the writer's first byte; moves where others append to the file as well, so that the last byte written is where the system has put it.
    private long _offset;

    // The lock guards of it what WriteQueue says.
    private readonly WriteQueue _queue;
    private readonly PendingFlushes _flushes;

    // The drain: the back end's while _isDraining, else whoever's holds the lock.
    private readonly DrainSteps _steps;
    private FileOperation? _operation;
    private bool _isDraining;

    // The first error, thrown again by every later flush and by CompleteAsync; and the task of all of those, which throws it each time as it was, without the traces of the
    // earlier calls.
    private Exception? _error;
    private Task<FlushResult>? _failedFlush;
    private int _flushesInQueue;
    private int _coalesced;
    private bool _cancelRequested;
    private bool _isCompleted;
    private bool _isAborted;
    private bool _isReleased;
    private UnrecordedCounts _counts;

    // Whoever awaits CompleteAsync while the drain runs.
    private TaskCompletionSource? _released;

    private FilePipeWriter(FileBackend backend, FilePipeWriterOptions options, long offset, bool leaveOpen, bool isOpenedByPath, UnfinishedFile? unfinished)
    {
        _backend = backend;
        _options = options;
        _offset = offset;
        _leaveOpen = leaveOpen;
        _isOpenedByPath = isOpenedByPath;
        _unfinished = unfinished;
        _steps = new DrainSteps(isFileNew: backend.IsNew, isFileChanged: isOpenedByPath && options.Mode != FileMode.Open);
        _flushes = new PendingFlushes(this);

        // Where one call writes one segment only, small segments would make small writes.
        int maxSegments = backend.MaxBuffersPerOperation;
        int segmentSize = maxSegments > 1 ? options.MinimumBufferSize : Math.Max(options.MinimumBufferSize, FilePipeWriterOptions.DefaultMinimumBufferSize);
        _queue = new WriteQueue(options.Pool, segmentSize, maxSegments, backend.LargestWriteSegment, keepsFlushesWhole: backend.Appends || backend.SharesPosition);
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
            lock (_lock)
            {
                return _offset + (_error is null && !_isAborted ? _queue.Flushed : _queue.Written);
            }
        }
    }

    /// <summary>How the system is asked to write: what <see cref="FilePipeBackend.Auto"/> has chosen.</summary>
    public FilePipeBackend Backend => _backend.Kind;

    /// <inheritdoc/>
    public override bool CanGetUnflushedBytes => true;

    /// <summary>Bytes that the writer has taken (<see cref="Advance"/>) and no flush has covered yet; 0 after the writer is completed.</summary>
    public override long UnflushedBytes => Volatile.Read(ref _isCompleted) ? 0 : _queue.Advanced - _queue.Flushed;

    internal FileBackend FileBackend => _backend;

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
    {
        options ??= FilePipeWriterOptions.Default;
        options.Validate();
        options.ValidateForPath();
        if (options.Replace)
        {
            UnfinishedFile unfinished = UnfinishedFile.Open(path, options);
            return new FilePipeWriter(unfinished.Backend, options, offset: 0, leaveOpen: false, isOpenedByPath: true, unfinished);
        }

        FileBackend backend = FileBackends.Open(options.Backend, path, options.Mode, FileAccess.Write, options.Share, options.FileOptions, options.PreallocationSize);
        return Create(backend, options, leaveOpen: false, isOpenedByPath: true);
    }

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
    {
        options ??= FilePipeWriterOptions.Default;
        options.Validate();
        options.ValidateForHandle();
        if (options.Replace)
        {
            throw new ArgumentException($"{nameof(FilePipeWriterOptions.Replace)} is for a file that is given by path: an open one has its name.", nameof(options));
        }

        FileBackend backend = FileBackends.Attach(options.Backend, handle);
        return backend.Appends && options.Offset is not null
            ? throw new ArgumentException("The handle is open for appending, so its bytes go to the end of the file: Offset cannot be honoured.", nameof(options))
            : Create(backend, options, options.LeaveOpen, isOpenedByPath: false);
    }

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
    {
        options ??= FilePipeWriterOptions.Default;
        options.Validate();
        options.ValidateForHandle();
        if (options.Mode != FileMode.Create || options.Offset is not null)
        {
            throw new ArgumentException("Where standard output is written to is for whoever started this process: neither Mode nor Offset can be set.", nameof(options));
        }

        return Create(FileBackends.OpenStandard(options.Backend, isOutput: true), options, leaveOpen: true, isOpenedByPath: false);
    }

    /// <summary>With <see cref="FilePipeWriterOptions.Replace"/>, and other calls than the system's: for tests.</summary>
    internal static FilePipeWriter Create(string path, FilePipeWriterOptions options, object calls)
    {
        options.Validate();
        UnfinishedFile unfinished = UnfinishedFile.Open(path, options, calls);
        return new FilePipeWriter(unfinished.Backend, options, offset: 0, leaveOpen: false, isOpenedByPath: true, unfinished);
    }

    internal static FilePipeWriter Create(FileBackend backend, FilePipeWriterOptions options, bool leaveOpen, bool isOpenedByPath)
    {
        backend.RequireOffset(options.Offset ?? 0, nameof(FilePipeWriterOptions), closeHandle: isOpenedByPath);
        long start = options.Mode == FileMode.Append || backend.Appends ? backend.Properties.Length : backend.SharesPosition ? backend.GetPosition() : 0;
        return new FilePipeWriter(backend, options, options.Offset ?? start, leaveOpen, isOpenedByPath, unfinished: null);
    }

    /// <summary>Memory for the next bytes, which <see cref="Advance"/> takes.</summary>
    /// <inheritdoc/>
    /// <param name="sizeHint">The least bytes that are wanted; 0 for whatever there is, never none.</param>
    /// <exception cref="InvalidOperationException">The writer is completed, or another call of it is under way on another thread.</exception>
    public override Memory<byte> GetMemory(int sizeHint = 0)
    {
        if (Volatile.Read(ref _isInCall) != 0)
        {
            throw OverlappingException();
        }

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
        if (Volatile.Read(ref _isInCall) != 0)
        {
            throw OverlappingException();
        }

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
        Enter();
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
            Leave();
        }
    }

    /// <summary>Makes the pending flushes, or else the next one, return at once with <see cref="FlushResult.IsCanceled"/>. What they flushed is written all the same.</summary>
    public override void CancelPendingFlush()
    {
        PooledCompletion<FlushResult>? canceled;
        lock (_lock)
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
        lock (_lock)
        {
            while (!_isReleased && !(_isAborted && !_backend.EndsWrites))
            {
                Monitor.Wait(_lock);
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
        Cancellation cancellation = default;
        bool release;
        lock (_lock)
        {
            if (_isReleased || _isAborted || _steps.IsTakingName)
            {
                // A file that is getting its name is whole: it is too late to give up.
                return;
            }

            release = !_isDraining && !_isCompleted;
            Volatile.Write(ref _isCompleted, true);
            _isAborted = true;
            flushes = _flushes.TakeAll();
            if (_isDraining)
            {
                cancellation = new Cancellation(_operation!);
            }

            if (!_backend.EndsWrites)
            {
                // What is under way may never end: whoever waits for it goes on.
                Monitor.PulseAll(_lock);
                _released?.TrySetResult();
            }
        }

        try
        {
            cancellation.Request(_backend);
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
        if (!Volatile.Read(ref _isCompleted))
        {
            GiveUpUnfinished();
            Complete();
        }
    }

    /// <inheritdoc cref="Dispose"/>
    public ValueTask DisposeAsync()
    {
        if (Volatile.Read(ref _isCompleted))
        {
            return WaitForReleaseAsync();
        }

        GiveUpUnfinished();
        return CompleteAsync();
    }

    bool IFileOperationOwner.RunsCallersCode => _options.Pool is not null;

    bool IFileOperationOwner.OnCompleted(FileOperation operation) => OnCompleted(operation);

    void ICountsOwner.RecordCounts() => RecordCounts();

    /// <summary>Flushes with this guarantee, whatever the option says: for a copy, which asks for the writer's own once, in the end.</summary>
    internal ValueTask<FlushResult> FlushAsExactlyAsync(FlushGuarantee guarantee, CancellationToken cancellationToken)
    {
        Enter();
        try
        {
            return FlushCoreAsync(guarantee, cancellationToken);
        }
        finally
        {
            Leave();
        }
    }

    private ValueTask<FlushResult> FlushCoreAsync(FlushGuarantee guarantee, CancellationToken cancellationToken)
    {
        PooledCompletion<FlushResult>? pending = null;
        FileOperation? drain = null;
        FileSegment? freed = null;
        Exception? error;
        bool isCanceled = false;
        UnrecordedCounts counts;
        lock (_lock)
        {
            ThrowIfCompleted();
            counts = _counts.Take();
            HandOver();
            error = _error;
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

                drain = TryBeginDrain();
            }
        }

        _ = SegmentPool.Shared.Return(freed);
        if (drain is not null)
        {
            Drain(drain, mayWait: false);
        }

        counts.Record();
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

    /// <summary>A copy into this writer begins, which takes several of its calls: it is not whole until <see cref="EndCopy"/>.</summary>
    internal void BeginCopy() => Interlocked.Increment(ref _copiesUnderWay);

    internal void EndCopy() => Interlocked.Decrement(ref _copiesUnderWay);

    /// <summary>
    /// A copy past the writer's own memory begins: no other call may come until <see cref="EndDirect"/>, which is to follow in any case.
    /// </summary>
    /// <exception cref="InvalidOperationException">Another call is under way: <see cref="EndDirect"/> must not follow.</exception>
    internal void BeginDirect() => Enter();

    internal void EndDirect() => Leave();

    /// <summary>Has everything written, between <see cref="BeginDirect"/> and <see cref="EndDirect"/>.</summary>
    internal ValueTask<FlushResult> FlushDirectAsync(CancellationToken cancellationToken) => FlushCoreAsync(FlushGuarantee.Written, cancellationToken);

    /// <summary>For a copy past the writer's own memory: that <paramref name="bytes"/> have gone to the file, and the file offset of the next byte. Everything is written.</summary>
    internal long Skip(long bytes)
    {
        FileSegment? freed;
        long position;
        lock (_lock)
        {
            ThrowIfCompleted();
            freed = _queue.Skip(bytes);
            position = _offset + _queue.Written;
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
                catch (OperationCanceledException) when (!Volatile.Read(ref _isCompleted))
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
            Leave();
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
        if (!_queue.TryAdvance(bytes, out int room) && !Volatile.Read(ref _isCompleted))
        {
            throw new ArgumentOutOfRangeException(nameof(bytes), bytes, bytes < 0
                ? "Advance takes the number of bytes that were written into the memory of GetMemory or GetSpan; it cannot go back."
                : $"Advance was told of more bytes than the {room} that are left of the memory of the last GetMemory or GetSpan. Ask for memory again before more is written into it.");
        }
    }

    private void GiveUpUnfinished()
    {
        if (_unfinished is not null)
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
        lock (_lock)
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

    /// <summary>
    /// Has the drain perform what it is set up for, and what comes after it. <paramref name="mayWait"/>: on this thread where that ends by itself, as this thread would
    /// only wait for another.
    /// </summary>
    private void Drain(FileOperation operation, bool mayWait)
    {
        if (!TryPin(operation) && !OnCompleted(operation))
        {
            return;
        }

        while (mayWait && _backend.TryPerform(operation, mayWait: true))
        {
            if (!OnCompleted(operation))
            {
                return;
            }
        }

        _backend.Start(operation);
    }

    private bool OnCompleted(FileOperation operation)
    {
        while (true)
        {
            PooledCompletion<FlushResult>? flushes;
            FileOperation? next;
            FileSegment? freed;
            Exception? error;
            bool release;
            operation.Clear();
            lock (_lock)
            {
                freed = EndDrain(operation);
                error = _error;
                _counts.Add(operation, _coalesced);
                _coalesced = 0;
                flushes = _flushes.TakeReached(_queue.Written, _steps.Synced, hasFailed: error is not null);
                next = TryBeginDrain();
                release = next is null && _isCompleted;
            }

            // What a caller's pool throws here concerns nobody who waits: the bytes are written.
            _ = SegmentPool.Shared.Return(freed);
            PendingFlushes.Complete(flushes, default, error, now: false);
            if (release)
            {
                Release();
            }

            if (next is null)
            {
                return false;
            }

            if (TryPin(next))
            {
                return true;
            }
        }
    }

    /// <summary>A caller's memory may throw here: that is what the write fails with.</summary>
    private static bool TryPin(FileOperation operation)
    {
        try
        {
            operation.Pin();
            return true;
        }
        catch (Exception e)
        {
            operation.Finish(e);
            return false;
        }
    }

    private void RecordCounts()
    {
        UnrecordedCounts counts;
        lock (_lock)
        {
            counts = _counts.Take();
        }

        counts.Record();
    }

    /// <summary>Whether the writer was aborted before; where it is completed already, nothing is begun.</summary>
    private bool BeginComplete(Exception? exception, bool mayWait)
    {
        FileOperation? drain;
        bool release;
        lock (_lock)
        {
            if (_isCompleted)
            {
                return _isAborted;
            }

            Volatile.Write(ref _isCompleted, true);
            if (exception is null && _unfinished is not null && IsAmidAWrite())
            {
                // What is there is a part of what was to be: the name is for the whole only.
                _error ??= new InvalidOperationException("The writer was completed while a write or a copy into it was under way, so its file is not whole and has not got its name. Await that first.");
            }
            else
            {
                bool isDurable = _options.FlushGuarantee == FlushGuarantee.Durable;
                if (exception is null)
                {
                    HandOver();
                    _steps.Complete(trims: (_unfinished is not null || isDurable) && HasRoomBehind(_queue.Flushed), syncs: isDurable, takesName: _unfinished is not null);
                }
                else
                {
                    _steps.Complete(trims: false, syncs: isDurable && _unfinished is null, takesName: false);
                }
            }

            drain = TryBeginDrain();
            release = !_isDraining;
        }

        if (release)
        {
            Release();
        }
        else if (drain is not null)
        {
            Drain(drain, mayWait);
        }

        return false;
    }

    /// <summary>Whether a call that takes bytes is under way, or a copy of several. Asked once the writer is completed: a call that begins later takes none.</summary>
    private bool IsAmidAWrite()
    {
        // Enter has a fence between its mark and its look at _isCompleted; this is the other side's.
        Interlocked.MemoryBarrier();
        return Volatile.Read(ref _isInCall) != 0 || Volatile.Read(ref _copiesUnderWay) != 0;
    }

    private ValueTask WaitForReleaseAsync()
    {
        lock (_lock)
        {
            return _isReleased || (_isAborted && !_backend.EndsWrites)
                ? default
                : new ValueTask((_released ??= new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously)).Task);
        }
    }

    private void ThrowIfNotWhole(bool wasAborted)
    {
        Exception? error;
        lock (_lock)
        {
            if (_isAborted && !wasAborted)
            {
                throw AbortedException();
            }

            error = wasAborted ? null : _error;
        }

        if (error is not null)
        {
            _ = Failed(error).GetAwaiter().GetResult();
        }
    }

    private Task<FlushResult> Failed(Exception error) => _failedFlush ??= Task.FromException<FlushResult>(error);

    /// <summary>Gives memory and handle back, by the one who found the writer completed and nothing under way.</summary>
    private void Release()
    {
        FileSegment? freed;
        FileOperation? operation;
        lock (_lock)
        {
            freed = _queue.ReleaseAll();
            operation = _operation;
            _operation = null;
        }

        operation?.Return();
        Exception? error = SegmentPool.Shared.Return(freed);
        try
        {
            if (!_steps.IsTrimmed && _unfinished is null && HasRoomBehind(_queue.Written))
            {
                Trim();
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            error ??= FileErrors.WithPath(e, _backend.Path);
        }

        if (_backend is { SharesPosition: true, Appends: false, EndOfLastWrite: < 0 } && _queue.Written > 0)
        {
            _backend.SetPosition(_offset + _queue.Written);
        }

        _unfinished?.Dispose();
        _backend.Release(closeHandle: !_leaveOpen);
        bool isCounting;
        lock (_lock)
        {
            _error ??= error;
            _isReleased = true;
            Monitor.PulseAll(_lock);
            _released?.TrySetResult();

            // Nobody may come to record them any more.
            isCounting = _isAborted && _counts.Any;
        }

        if (isCounting)
        {
            ThreadPool.UnsafeQueueUserWorkItem(static writer => writer.RecordCounts(), this, preferLocal: false);
        }
    }

    /// <summary>What was preallocated and not written is given back.</summary>
    private void Trim() => RandomAccess.SetLength(_backend.Handle, EndOf(_queue.Written));

    private void OnTokenCanceled(CancellationToken token)
    {
        PooledCompletion<FlushResult>? canceled;
        lock (_lock)
        {
            canceled = _flushes.TakeCanceled(token);
        }

        PendingFlushes.Complete(canceled, default, new OperationCanceledException(token), now: true);
    }

    // What follows is called under the lock.

    private void HandOver()
    {
        if (_queue.Advanced > _queue.Flushed)
        {
            _flushesInQueue++;
            _queue.Flush();
        }
    }

    /// <summary>The file's length when it is completed. It was made empty: with nothing written it is.</summary>
    private long EndOf(long written) => written == 0 ? 0 : _offset + written;

    /// <summary>Whether the file is longer than what was written. On Windows room is reserved behind its end, and goes by itself when it is closed.</summary>
    private bool HasRoomBehind(long written)
        => !OperatingSystem.IsWindows() && _isOpenedByPath && _backend.CanSeek && _options.PreallocationSize > EndOf(written);

    /// <summary>Sets the drain up where it is idle and has something to do.</summary>
    private FileOperation? TryBeginDrain()
    {
        if (_isDraining || _error is not null || _isAborted)
        {
            return null;
        }

        switch (_steps.Begin(_queue, _flushes))
        {
            case DrainStep.None:
                return null;
            case DrainStep.Write:
                BeginOperation(FileOperationKind.Write, _offset + _queue.Written);
                _operation.NeedsOwnThread = _flushes.WantsSync(long.MaxValue) || !_backend.CanSeek;
                _queue.BeginWrite(_operation, BytesPerWrite);
                _coalesced = Math.Max(0, _flushesInQueue - 1);
                _flushesInQueue = 0;
                break;
            case DrainStep.Trim:
                BeginStep(Trim);
                break;
            case DrainStep.Sync:
                BeginOperation(FileOperationKind.Sync, offset: 0);
                break;
            case DrainStep.SyncFolder:
                BeginStep(_backend.SyncFolder);
                break;
            case DrainStep.TakeName:
                BeginStep(_unfinished!.Appear);
                break;
        }

        _isDraining = true;
        return _operation;
    }

    [MemberNotNull(nameof(_operation))]
    private void BeginOperation(FileOperationKind kind, long offset)
    {
        _operation ??= _backend.Rent(this);
        _operation.Begin(kind, offset);
    }

    private void BeginStep(Action step)
    {
        _operation ??= _backend.Rent(this);
        _operation.BeginStep(step);
    }

    /// <summary>Records what came of the drain. An operation that was canceled has moved nothing, and is set up again if it is still wanted.</summary>
    private FileSegment? EndDrain(FileOperation operation)
    {
        _isDraining = false;
        if (operation.Error is not null)
        {
            _error = operation.Error;
        }
        else if (!operation.IsCanceled)
        {
            if (operation.Kind != FileOperationKind.Write)
            {
                _steps.End();
            }
            else if (operation.Transferred > 0)
            {
                FileSegment? freed = _queue.OnWritten(operation.Transferred);
                if (_backend.EndOfLastWrite is long end and >= 0)
                {
                    _offset = end - _queue.Written;
                }

                return freed;
            }
            else
            {
                _error = new IOException($"The system took none of {operation.Length} bytes and named no error : '{_backend.Path}'");
            }
        }

        return _error is null ? null : _queue.DropFlushed();
    }

    /// <summary>Whether everything that was flushed is as far as the guarantee asks; else how far the flush waits for it, bytes.</summary>
    private bool IsReached(FlushGuarantee guarantee, out long target)
    {
        if (guarantee == FlushGuarantee.WriteBehind && _options.PauseWriterThreshold > 0)
        {
            target = _queue.Flushed - _options.EffectiveResumeThreshold;
            return _queue.Flushed - _queue.Written < _options.PauseWriterThreshold;
        }

        target = _queue.Flushed;
        return (guarantee == FlushGuarantee.Durable ? _steps.Synced : _queue.Written) >= target;
    }

    private void ThrowIfCompleted()
    {
        if (_isCompleted)
        {
            throw new InvalidOperationException("Writing is not allowed after the writer was completed.");
        }
    }

    /// <summary>The caller begins a call that only one may be in at a time. Not for those that may come from any thread.</summary>
    private void Enter()
    {
        if (Interlocked.Exchange(ref _isInCall, 1) != 0)
        {
            throw OverlappingException();
        }
    }

    private void Leave() => Volatile.Write(ref _isInCall, 0);

    private static InvalidOperationException OverlappingException()
        => new("Another call of this writer is under way: one caller uses a writer at a time. Await each WriteAsync, or have threads take turns, for example with a SemaphoreSlim.");

    private static OperationCanceledException AbortedException() => new("The writer was aborted.");
}
