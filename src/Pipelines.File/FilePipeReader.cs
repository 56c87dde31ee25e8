using System.Buffers;
using System.Diagnostics;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;

namespace Pipelines.File;

/// <summary>
/// A <see cref="PipeReader"/> that sits directly on a file: one vectored system call fills several pooled segments, data that the system already holds arrives
/// synchronously, and only what has to wait is handed over.
/// </summary>
/// <remarks>
/// A drop-in for <c>PipeReader.Create(new FileStream(…))</c>. One caller uses it at a time; <see cref="CancelPendingRead"/> and <see cref="Complete"/> may come from
/// any thread. An I/O error is an <see cref="IOException"/> (or <see cref="UnauthorizedAccessException"/>) that names the path where it is known, and every
/// later read throws it again.
/// </remarks>
public sealed class FilePipeReader : PipeReader, IFileOperationOwner
{
    /// <summary>Bytes that one read asks for where the file has as many. Chosen by measurement: docs/tuning.md.</summary>
    internal const int BytesPerRead = 256 * 1024;

    /// <summary>Bytes that the first read asks for where nobody knows how many there are; it doubles for as long as reads fill what they ask for.</summary>
    private const int FirstUnknownRead = 4 * 1024;

    /// <summary>Bytes that one read of unknown size asks for at most because a caller wants so many.</summary>
    private const int MaxUnknownRead = 1024 * 1024;

    /// <summary>Bytes that a copy asks the destination for at most.</summary>
    private const int MaxCopyHint = 64 * 1024;

    private readonly FileBackend _backend;
    private readonly FilePipeReaderOptions _options;
    private readonly bool _leaveOpen;

    // The lock, and the chain that it guards along with every field below. Nothing is called under it that waits or that runs a caller's code,
    // but for the Rent of a caller's memory pool.
    private readonly ReadChain _chain;

    // Owned by the state that says so: by the caller's thread while _state is Trying or Copying, by the back end while it is Started, else by whoever holds the lock.
    private FileOperation? _operation;
    private OperationState _state;

    // The pending ReadAsync. Whoever sets it to null, under the lock, is the one who completes it.
    private PooledCompletion<ReadResult>? _pending;
    private PooledCompletion<ReadResult>? _reusable;
    private PooledCompletion<long>? _pendingCopy;
    private PooledCompletion<long>? _reusableCopy;
    private Exception? _error;
    private int _minimumSize;
    private int _unknownReadSize;
    private bool _examinedEverything;
    private bool _cancelRequested;
    private bool _isEnded;
    private bool _isCompleted;
    private bool _isCopying;
    private bool _isPaused;

    private FilePipeReader(FileBackend backend, FilePipeReaderOptions options, bool leaveOpen)
    {
        _backend = backend;
        _options = options;
        _leaveOpen = leaveOpen;

        // Where one call fills one segment only, it is that segment which is large.
        int segmentSize = backend.MaxBuffersPerOperation > 1 ? options.BufferSize : Math.Max(options.BufferSize, BytesPerRead);
        _chain = new ReadChain(options.Pool, segmentSize, backend.MaxBuffersPerOperation);
        _unknownReadSize = Math.Min(options.BufferSize, FirstUnknownRead);
        _isEnded = options.Length == 0;
    }

    private enum OperationState
    {
        /// <summary>No system call is under way.</summary>
        Idle,

        /// <summary>The caller's thread is in a call that does not wait.</summary>
        Trying,

        /// <summary>The back end has the operation.</summary>
        Started,
    }

    /// <summary>The file offset, in bytes, of the first byte that is not consumed yet. A file that cannot seek counts from 0.</summary>
    public long Position
    {
        get
        {
            lock (_chain)
            {
                return _options.Offset + _chain.Start;
            }
        }
    }

    /// <summary>The back end in use: the one that <see cref="FilePipeBackend.Auto"/> chose.</summary>
    public FilePipeBackend Backend => _backend.Kind;

    internal FileBackend FileBackend => _backend;

    /// <summary>Opens a file for reading and puts a reader on it, which closes it when it is completed.</summary>
    /// <param name="path">The file: absolute, or relative to the current directory. FIFOs, devices and files of /proc work.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="FileNotFoundException">There is no such file.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder on the way to it.</exception>
    /// <exception cref="UnauthorizedAccessException">The caller may not read it, or it is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeReaderOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    /// <exception cref="IOException">Opening it failed otherwise, for example because another process has it open exclusively.</exception>
    public static FilePipeReader Create(string path, FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        FileBackend backend = FileBackends.Open(options.Backend, path, FileMode.Open, FileAccess.Read, options.Share, options.FileOptions, preallocationSize: 0);
        return Create(backend, options, leaveOpen: false, isOpenedByPath: true);
    }

    /// <summary>
    /// Puts a reader on an open file, which it closes when it is completed unless <see cref="FilePipeReaderOptions.LeaveOpen"/> says otherwise. Where this throws,
    /// the file stays open.
    /// </summary>
    /// <param name="handle">The file, open for reading. A file that can seek is read from <see cref="FilePipeReaderOptions.Offset"/>, wherever its own position is.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="handle"/> is invalid.</exception>
    /// <exception cref="ObjectDisposedException"><paramref name="handle"/> is closed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeReaderOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    public static FilePipeReader Create(SafeFileHandle handle, FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        return Create(FileBackends.Attach(options.Backend, handle), options, options.LeaveOpen);
    }

    internal static FilePipeReader Create(FileBackend backend, FilePipeReaderOptions options, bool leaveOpen, bool isOpenedByPath = false)
    {
        backend.RequireOffset(options.Offset, nameof(FilePipeReaderOptions), closeHandle: isOpenedByPath);
        return new FilePipeReader(backend, options, leaveOpen);
    }

    /// <inheritdoc/>
    public override ValueTask<ReadResult> ReadAsync(CancellationToken cancellationToken = default) => ReadCoreAsync(0, cancellationToken);

    /// <inheritdoc/>
    protected override ValueTask<ReadResult> ReadAtLeastAsyncCore(int minimumSize, CancellationToken cancellationToken)
        => ReadCoreAsync(minimumSize, cancellationToken);

    /// <summary>Gives what is buffered and not examined yet. It makes no system call of its own.</summary>
    /// <inheritdoc/>
    public override bool TryRead(out ReadResult result)
    {
        lock (_chain)
        {
            ThrowIfNotReadable();
            return TryGetResult(0, out result);
        }
    }

    /// <inheritdoc/>
    public override void AdvanceTo(SequencePosition consumed) => AdvanceTo(consumed, consumed);

    /// <inheritdoc/>
    /// <exception cref="InvalidOperationException">A position is not one of the buffer that the last read returned, or the reader is completed. Nothing has changed.</exception>
    public override void AdvanceTo(SequencePosition consumed, SequencePosition examined)
    {
        bool readAhead;
        lock (_chain)
        {
            ThrowIfCompleted();
            if (consumed.GetObject() is null || examined.GetObject() is null)
            {
                // The positions of an empty buffer.
                return;
            }

            long consumedIndex = _chain.IndexOf(consumed);
            long examinedIndex = consumed.Equals(examined) ? consumedIndex : _chain.IndexOf(examined);
            _examinedEverything = examinedIndex == _chain.End;
            _chain.ConsumeTo(consumedIndex);
            readAhead = TryPrepareReadAhead();
        }

        if (readAhead)
        {
            Start(_operation!);
        }
    }

    /// <summary>
    /// Makes the pending, or else the next, read return at once with <see cref="ReadResult.IsCanceled"/>, also while the system call underneath goes on.
    /// Nothing that the call reads is lost: a later read returns it.
    /// </summary>
    public override void CancelPendingRead()
    {
        PooledCompletion<ReadResult>? pending;
        ReadResult result = default;
        FileOperation? started;
        lock (_chain)
        {
            pending = _pending;
            _pending = null;
            if (pending is null)
            {
                _cancelRequested = true;
            }
            else
            {
                result = new ReadResult(_chain.Sequence, isCanceled: true, _isEnded);
            }

            started = StartedForCaller(pending);
        }

        pending?.Complete(result, null, mayRunInline: false);
        TryCancel(started);
    }

    /// <summary>
    /// Ends the reader and closes the file. A pending read ends at once with <see cref="InvalidOperationException"/>; its memory and the handle are released
    /// when the system is done with them.
    /// </summary>
    /// <param name="exception">Ignored: there is nobody on the other side to be told.</param>
    public override void Complete(Exception? exception = null)
    {
        PooledCompletion<ReadResult>? pending;
        FileOperation? started;
        bool release;
        lock (_chain)
        {
            if (_isCompleted)
            {
                return;
            }

            _isCompleted = true;
            pending = _pending;
            _pending = null;
            started = _state == OperationState.Started ? _operation : null;

            // Else whoever has the operation, or copies, releases everything when that ends.
            release = _state == OperationState.Idle && !_isCopying;
            if (release)
            {
                ReleaseMemory();
            }
        }

        if (release)
        {
            _backend.Release(closeHandle: !_leaveOpen);
        }

        pending?.Complete(default, CompletedException(), mayRunInline: false);
        TryCancel(started);
    }

    /// <inheritdoc cref="Complete"/>
    public override ValueTask CompleteAsync(Exception? exception = null)
    {
        Complete(exception);
        return default;
    }

    /// <summary>
    /// Copies what is buffered and the rest of the file to <paramref name="destination"/>, read straight into its own memory, with a flush after every read.
    /// Ends at the end of the file, or when the destination's reader is gone (<see cref="FlushResult.IsCompleted"/>); completes neither side.
    /// </summary>
    /// <inheritdoc/>
    public override Task CopyToAsync(PipeWriter destination, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(destination);
        lock (_chain)
        {
            ThrowIfNotReadable();
            if (cancellationToken.IsCancellationRequested)
            {
                return Task.FromCanceled(cancellationToken);
            }

            if (_options.PauseReadAheadThreshold == 0 && _state == OperationState.Idle)
            {
                _isCopying = true;
            }
        }

        // With a read under way into our own segments, the ordinary way it is.
        return _isCopying ? CopyToCoreAsync(destination, cancellationToken) : base.CopyToAsync(destination, cancellationToken);
    }

    bool IFileOperationOwner.OnCompleted(FileOperation operation)
    {
        PooledCompletion<long>? pendingCopy;
        PooledCompletion<ReadResult>? pending = null;
        ReadResult result = default;
        Exception? error = null;
        bool again = false;
        bool release = false;

        // Once the lock is released the operation may be in use again.
        bool isCanceled = operation.IsCanceled;
        lock (_chain)
        {
            _state = OperationState.Idle;
            pendingCopy = _pendingCopy;
            _pendingCopy = null;
            if (pendingCopy is null)
            {
                bool hasMore = TakeBack(operation);
                if (_isCompleted)
                {
                    release = true;
                    ReleaseMemory();
                }
                else if (_pending is null)
                {
                    _examinedEverything &= !hasMore;
                    again = TryPrepareReadAhead();
                }
                else if (IsSatisfied(hasMore, _minimumSize))
                {
                    pending = _pending;
                    _pending = null;
                    error = _error;
                    result = new ReadResult(_chain.Sequence, isCanceled: false, _isEnded);
                    again = TryPrepareReadAhead();
                }
                else
                {
                    try
                    {
                        Prepare(_minimumSize, OperationState.Started);
                        again = true;
                    }
                    catch (Exception e)
                    {
                        // The caller's memory pool threw: at the one who waits, as it would have on the caller's own thread.
                        pending = _pending;
                        _pending = null;
                        error = e;
                    }
                }
            }
        }

        if (release)
        {
            _backend.Release(closeHandle: !_leaveOpen);
        }

        // Where this thread goes on reading, or is not the back end's own, the continuation runs elsewhere.
        bool mayRunInline = !again && !isCanceled;
        pendingCopy?.Complete(0, null, mayRunInline);
        pending?.Complete(result, error, mayRunInline);
        return again;
    }

    private ValueTask<ReadResult> ReadCoreAsync(int minimumSize, CancellationToken cancellationToken)
    {
        FileOperation operation;
        lock (_chain)
        {
            ThrowIfNotReadable();
            if (cancellationToken.IsCancellationRequested)
            {
                return ValueTask.FromCanceled<ReadResult>(cancellationToken);
            }

            if (TryGetResult(minimumSize, out ReadResult result))
            {
                return new ValueTask<ReadResult>(result);
            }

            if (_isEnded)
            {
                return new ValueTask<ReadResult>(new ReadResult(_chain.Sequence, isCanceled: false, isCompleted: true));
            }

            if (_error is not null)
            {
                return ValueTask.FromException<ReadResult>(_error);
            }

            if (_state == OperationState.Started)
            {
                // A read-ahead, or what a cancelled read left behind.
                return Wait(minimumSize, cancellationToken);
            }

            operation = Prepare(minimumSize, OperationState.Trying);
        }

        while (true)
        {
            bool isPerformed = _backend.TryPerform(operation);
            bool release = false;
            bool start = false;
            bool isCanceled = false;
            ValueTask<ReadResult> answer = default;
            lock (_chain)
            {
                if (!isPerformed)
                {
                    // Also after Complete: the system may have the memory already, and what it reports releases everything.
                    _state = OperationState.Started;
                    start = true;
                    if (_isCompleted)
                    {
                        answer = ValueTask.FromException<ReadResult>(CompletedException());
                    }
                    else if (TryGetCanceled(cancellationToken, out answer))
                    {
                        isCanceled = _options.PauseReadAheadThreshold == 0;
                    }
                    else
                    {
                        answer = Wait(minimumSize, cancellationToken);
                    }
                }
                else
                {
                    FilePipeMetrics.ReadInline();
                    _state = OperationState.Idle;
                    bool hasMore = TakeBack(operation);
                    if (_isCompleted)
                    {
                        release = true;
                        ReleaseMemory();
                    }
                    else if (IsSatisfied(hasMore, minimumSize))
                    {
                        answer = _error is null
                            ? new ValueTask<ReadResult>(new ReadResult(_chain.Sequence, isCanceled: false, _isEnded))
                            : ValueTask.FromException<ReadResult>(_error);
                        start = TryPrepareReadAhead();
                    }
                    else if (!TryGetCanceled(cancellationToken, out answer))
                    {
                        Prepare(minimumSize, OperationState.Trying);
                        continue;
                    }
                }
            }

            if (release)
            {
                _backend.Release(closeHandle: !_leaveOpen);
                return ValueTask.FromException<ReadResult>(CompletedException());
            }

            if (start)
            {
                Start(operation);
                TryCancel(isCanceled ? operation : null);
            }

            return answer;
        }
    }

    private async Task CopyToCoreAsync(PipeWriter destination, CancellationToken cancellationToken)
    {
        CancellationTokenRegistration registration = cancellationToken.UnsafeRegister(static (state, token) => ((FilePipeReader)state!).OnTokenCanceled(token), this);
        try
        {
            ThrowIfCopyCanceled(cancellationToken);
            if (await CopyBufferedAsync(destination, cancellationToken).ConfigureAwait(false)
                && (destination is not FilePipeWriter writer || await CopyRangesAsync(writer, cancellationToken).ConfigureAwait(false)))
            {
                while (!_isEnded && await CopyNextAsync(destination, cancellationToken).ConfigureAwait(false))
                {
                }
            }
        }
        finally
        {
            registration.Unregister();
            bool release;
            lock (_chain)
            {
                _isCopying = false;
                release = _isCompleted;
                if (release)
                {
                    ReleaseMemory();
                }
            }

            if (release)
            {
                _backend.Release(closeHandle: !_leaveOpen);
            }
        }
    }

    /// <summary>Writes the segments that earlier reads have left. <see langword="false"/>: the destination takes no more.</summary>
    private async ValueTask<bool> CopyBufferedAsync(PipeWriter destination, CancellationToken cancellationToken)
    {
        // While _isCopying nobody else moves the chain.
        ReadOnlySequence<byte> buffered = _chain.Sequence;
        foreach (ReadOnlyMemory<byte> memory in buffered)
        {
            ThrowIfCopyCanceled(cancellationToken);

            bool goesOn;
            try
            {
                goesOn = GoesOn(await destination.WriteAsync(memory, cancellationToken).ConfigureAwait(false));
            }
            finally
            {
                // Also where the write fails: the destination may have taken them, and each byte goes there once.
                lock (_chain)
                {
                    _chain.ConsumeTo(_chain.Start + memory.Length);
                    _examinedEverything = _chain.Length == 0;
                }
            }

            if (!goesOn)
            {
                return false;
            }
        }

        // An error comes after what was read before it, and is not tried again.
        return _error is null ? true : throw _error;
    }

    /// <summary>Reads once into the destination's memory and flushes it. <see langword="false"/>: the destination takes no more.</summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<bool> CopyNextAsync(PipeWriter destination, CancellationToken cancellationToken)
    {
        ThrowIfCopyCanceled(cancellationToken);
        long wanted = NextReadSize(0);
        Memory<byte> memory = destination.GetMemory((int)Math.Min(wanted, MaxCopyHint));
        memory = memory[..(int)Math.Min(memory.Length, _options.Length - _chain.End ?? long.MaxValue)];
        FileOperation operation;
        lock (_chain)
        {
            operation = _operation ??= FileOperation.Rent(this);
            operation.Kind = FileOperationKind.Read;
            operation.Offset = _options.Offset + _chain.End;
            operation.Add(memory, address: 0);
            _state = OperationState.Trying;
        }

        if (_backend.TryPerform(operation))
        {
            FilePipeMetrics.ReadInline();
        }
        else
        {
            await PerformAsync(operation, cancellationToken).ConfigureAwait(false);
        }

        long transferred = operation.Transferred;
        lock (_chain)
        {
            _state = OperationState.Idle;
            Record(operation);
            _chain.Skip(transferred);
            operation.Clear();
            if (_error is not null)
            {
                throw _error;
            }
        }

        if (transferred == 0)
        {
            return true;
        }

        destination.Advance((int)transferred);
        return GoesOn(await destination.FlushAsync(cancellationToken).ConfigureAwait(false));
    }

    /// <summary>
    /// Has the system copy from file to file (copy_file_range(2)) for as long as it can; whatever is left, the end of the file included, is for the ordinary way.
    /// <see langword="false"/>: the destination takes no more.
    /// </summary>
    private async ValueTask<bool> CopyRangesAsync(FilePipeWriter destination, CancellationToken cancellationToken)
    {
        bool hasCopied = false;
        while (!_isEnded && _backend.CanCopyTo(destination.FileBackend))
        {
            ThrowIfCopyCanceled(cancellationToken);
            long length = Math.Min(_backend.Shape.Length - (_options.Offset + _chain.End), _options.Length - _chain.End ?? long.MaxValue);
            if (length <= 0)
            {
                break;
            }

            // Nothing of the writer's may be on its way: the copy goes past its memory.
            if (!GoesOn(await destination.FlushWrittenAsync(cancellationToken).ConfigureAwait(false)))
            {
                return false;
            }

            FileOperation operation;
            lock (_chain)
            {
                operation = _operation ??= FileOperation.Rent(this);
                operation.Kind = FileOperationKind.Copy;
                operation.Offset = _options.Offset + _chain.End;
                operation.Destination = destination.FileBackend;
                operation.DestinationOffset = destination.SkipWritten(0);
                operation.Length = length;
            }

            await PerformAsync(operation, cancellationToken).ConfigureAwait(false);
            long copied = operation.Transferred;
            lock (_chain)
            {
                _state = OperationState.Idle;
                operation.Clear();
                _chain.Skip(copied);
                _isEnded |= _chain.End == _options.Length;
                destination.SkipWritten(copied);
                if (operation.Error is not null)
                {
                    throw operation.Error;
                }
            }

            if (copied == 0)
            {
                break;
            }

            hasCopied = true;
        }

        // The writer's guarantee holds for what went past it, too.
        return !hasCopied || GoesOn(await destination.FlushAsync(cancellationToken).ConfigureAwait(false));
    }

    /// <summary>Has the back end perform an operation of a copy, which waits for it whatever happens: its memory is not ours.</summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask PerformAsync(FileOperation operation, CancellationToken cancellationToken)
    {
        bool isCanceled;
        PooledCompletion<long> pending;
        lock (_chain)
        {
            // One copy at a time, which awaits each of its operations: free again whenever this comes by.
            pending = _reusableCopy ??= new PooledCompletion<long>(_options.ReaderScheduler, useSynchronizationContext: false, static _ => { });
            _state = OperationState.Started;
            _pendingCopy = pending;

            // What comes from here on finds the operation started; what came before found nothing to cancel.
            isCanceled = _cancelRequested || cancellationToken.IsCancellationRequested;
        }

        Start(operation);
        if (isCanceled)
        {
            _backend.TryCancel(operation, this);
        }

        await pending.Task.ConfigureAwait(false);
    }

    private static bool GoesOn(FlushResult flush)
        => flush.IsCanceled ? throw new OperationCanceledException("The flush of the destination was canceled.") : !flush.IsCompleted;

    private void ThrowIfCopyCanceled(CancellationToken cancellationToken)
    {
        cancellationToken.ThrowIfCancellationRequested();
        lock (_chain)
        {
            ThrowIfCompleted();
            if (_cancelRequested)
            {
                _cancelRequested = false;
                throw new OperationCanceledException("The read was canceled.");
            }
        }
    }

    private void OnTokenCanceled(CancellationToken token)
    {
        PooledCompletion<ReadResult>? pending = null;
        FileOperation? started;
        lock (_chain)
        {
            // A callback that comes late may meet a later wait: with the same token that one ends as well, with another it does not.
            if (_pending?.CancellationToken == token)
            {
                pending = _pending;
                _pending = null;
            }

            started = StartedForCaller(pending);
        }

        pending?.Complete(default, new OperationCanceledException(token), mayRunInline: false);
        TryCancel(started);
    }

    // What follows is called under the lock.

    private FileOperation? StartedForCaller(PooledCompletion<ReadResult>? ended)
        => _state == OperationState.Started && (_isCopying || (ended is not null && _options.PauseReadAheadThreshold == 0)) ? _operation : null;

    private ValueTask<ReadResult> Wait(int minimumSize, CancellationToken cancellationToken)
    {
        PooledCompletion<ReadResult> pending = Interlocked.Exchange(ref _reusable, null)
            ?? new PooledCompletion<ReadResult>(_options.ReaderScheduler, _options.UseSynchronizationContext, completion => Volatile.Write(ref _reusable, completion));
        _minimumSize = minimumSize;
        _pending = pending;
        ValueTask<ReadResult> task = pending.Task;
        if (cancellationToken.CanBeCanceled)
        {
            pending.Begin(cancellationToken);
            CancellationTokenRegistration registration = cancellationToken.UnsafeRegister(static (state, token) => ((FilePipeReader)state!).OnTokenCanceled(token), this);
            if (_pending == pending)
            {
                pending.Registration = registration;
            }
        }

        return task;
    }

    private bool TryGetResult(int minimumSize, out ReadResult result)
    {
        bool isCanceled = _cancelRequested;
        if (isCanceled || (_chain.Length > 0 && (_isEnded || (!_examinedEverything && _chain.Length >= minimumSize))))
        {
            _cancelRequested = false;
            result = new ReadResult(_chain.Sequence, isCanceled, _isEnded);
            return true;
        }

        result = default;
        return false;
    }

    /// <summary>A cancellation that came while the caller's thread was in a call found no wait to end: it ends the read before that waits, or goes on.</summary>
    private bool TryGetCanceled(CancellationToken cancellationToken, out ValueTask<ReadResult> answer)
    {
        if (_cancelRequested)
        {
            _cancelRequested = false;
            answer = new ValueTask<ReadResult>(new ReadResult(_chain.Sequence, isCanceled: true, _isEnded));
            return true;
        }

        bool isCanceled = cancellationToken.IsCancellationRequested;
        answer = isCanceled ? ValueTask.FromCanceled<ReadResult>(cancellationToken) : default;
        return isCanceled;
    }

    private bool IsSatisfied(bool hasMore, int minimumSize)
        => _isEnded || _error is not null || (hasMore && _chain.Length >= minimumSize);

    /// <summary>Sets the operation up for the next read of the chain.</summary>
    private FileOperation Prepare(int minimumSize, OperationState next)
    {
        FileOperation operation = _operation ??= FileOperation.Rent(this);
        operation.Kind = FileOperationKind.Read;
        operation.Offset = _options.Offset + _chain.End;
        _chain.Lend(operation, NextReadSize(minimumSize));
        _state = next;
        return operation;
    }

    private bool TryPrepareReadAhead()
    {
        if (_options.PauseReadAheadThreshold == 0 || _state != OperationState.Idle || _isEnded || _isCompleted || _isCopying || _error is not null)
        {
            return false;
        }

        if (_chain.Length >= _options.PauseReadAheadThreshold)
        {
            _isPaused = true;
        }
        else if (_chain.Length <= _options.EffectiveResumeThreshold)
        {
            _isPaused = false;
        }

        if (_isPaused)
        {
            return false;
        }

        try
        {
            Prepare(0, OperationState.Started);
            return true;
        }
        catch (Exception)
        {
            // The caller's memory pool threw. Nobody has asked for these bytes: the read that does so meets the pool itself.
            return false;
        }
    }

    /// <summary>Bytes to ask for: never none.</summary>
    private long NextReadSize(int minimumSize)
    {
        long missing = Math.Max(0, minimumSize - _chain.Length);
        long known = _backend.Shape.Length - (_options.Offset + _chain.End);
        long size = known > 0
            ? Math.Min(Math.Max(Math.Max(BytesPerRead, _options.BufferSize), missing), known)
            : Math.Max(_unknownReadSize, Math.Min(missing, MaxUnknownRead));
        return Math.Min(size, _options.Length - _chain.End ?? long.MaxValue);
    }

    /// <summary>Takes the memory and the outcome of a read of the chain. Whether there are more bytes than before.</summary>
    private bool TakeBack(FileOperation operation)
    {
        _chain.TakeBack(operation.Transferred);
        Record(operation);
        operation.Clear();
        return operation.Transferred > 0;
    }

    private void Record(FileOperation operation)
    {
        if (operation.Error is not null)
        {
            _error = operation.Error;
        }
        else if (operation.Transferred == 0)
        {
            _isEnded |= !operation.IsCanceled;
        }
        else
        {
            FilePipeMetrics.Read(operation.Transferred);
            long end = operation.Offset - _options.Offset + operation.Transferred;
            _isEnded |= end == _options.Length;
            if (operation.Transferred == operation.Length && operation.Offset >= _backend.Shape.Length)
            {
                _unknownReadSize = Math.Min(_unknownReadSize * 2, BytesPerRead);
            }
        }
    }

    /// <summary>Gives all memory back; the handle is for the caller to release, without the lock.</summary>
    private void ReleaseMemory()
    {
        _chain.Release();
        _operation?.Return();
        _operation = null;
    }

    private void ThrowIfNotReadable()
    {
        ThrowIfCompleted();
        if (_pending is not null || _state == OperationState.Trying || _isCopying)
        {
            throw new InvalidOperationException("Another read is pending: a reader serves one at a time.");
        }
    }

    private void ThrowIfCompleted()
    {
        if (_isCompleted)
        {
            throw CompletedException();
        }
    }

    private static InvalidOperationException CompletedException() => new("Reading is not allowed after the reader was completed.");

    /// <summary>Not under the lock, although the operation was set up there: it may be reported before this returns.</summary>
    private void Start(FileOperation operation)
    {
        _backend.Start(operation);
        if (Volatile.Read(ref _isCompleted))
        {
            // Complete may have tried to cancel what was not started yet.
            _backend.TryCancel(operation, this);
        }
    }

    private void TryCancel(FileOperation? started)
    {
        if (started is not null)
        {
            _backend.TryCancel(started, this);
        }
    }
}
