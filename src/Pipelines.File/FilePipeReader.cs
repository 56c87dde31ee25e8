using System.Buffers;
using System.IO.Pipelines;
using System.Runtime.ExceptionServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Backends;
using Pipelines.File.Buffers;
using Pipelines.File.Waiting;

namespace Pipelines.File;

/// <summary>
/// A <see cref="PipeReader"/> that reads a file without a <see cref="FileStream"/>: one system call fills several pieces of pooled memory, and what the system has in its
/// cache is there when <see cref="ReadAsync"/> returns; only a read that has to wait for the device is made on another thread.
/// </summary>
/// <remarks>
/// It behaves as <c>PipeReader.Create(new FileStream(…))</c> does. One caller uses it at a time; <see cref="CancelPendingRead"/> and <see cref="Complete"/> may come from
/// any thread. An I/O error is an <see cref="IOException"/> (or <see cref="UnauthorizedAccessException"/>) that names the path where it is known, and every
/// later read throws it again.
/// </remarks>
public sealed class FilePipeReader : PipeReader, IFileOperationOwner, IDisposable, IAsyncDisposable
{
    private static readonly Action<object?, CancellationToken> s_onTokenCanceled = static (state, token) => ((FilePipeReader)state!).OnTokenCanceled(token);

    // The lock, which guards it and every field below. Nothing is called under it that waits or that runs a caller's code, a caller's memory pool included.
    private readonly ReadState _state;
    private readonly bool _leaveOpen;

    // The read under way. It belongs to the caller's thread while _stage is Trying, to the back end while it is Started, and to whoever holds the lock while it is Idle.
    private FileOperation? _operation;
    private Stage _stage;
    private bool _isCompleted;
    private bool _isReleased;

    // While _stage is Copying.
    private FileCopy? _copy;

    // From the first call on that has to wait; many files need none.
    private ReadWaits? _waits;

    private FilePipeReader(ReadState state, bool leaveOpen)
    {
        _state = state;
        _leaveOpen = leaveOpen;
    }

    private enum Stage : byte
    {
        /// <summary>No system call is under way.</summary>
        Idle,

        /// <summary>The caller's thread is in a call that does not wait.</summary>
        Trying,

        /// <summary>The back end has the operation.</summary>
        Started,

        /// <summary>CopyToAsync has the file, with an operation of its own.</summary>
        Copying,
    }

    /// <summary>
    /// The file offset, in bytes, of the first byte that is not consumed yet. A file that cannot seek counts from 0. In a loop over ReadLinesAsync it is behind the lines of earlier reads:
    /// it moves with each read, and not with each line.
    /// </summary>
    public long Position
    {
        get
        {
            lock (_state)
            {
                return _state.Position + (_copy?.Copied ?? 0);
            }
        }
    }

    /// <summary>
    /// The length of the file, bytes, when it was opened, for percentages: of the whole file, whatever <see cref="FilePipeReaderOptions.Offset"/> and
    /// <see cref="FilePipeReaderOptions.Length"/> say. <see langword="null"/> where nobody knows it before everything is read: pipes, devices, files of /proc.
    /// </summary>
    public long? Length => FileBackend.Properties.KnownLength;

    /// <summary>How the system is asked for bytes: what <see cref="FilePipeBackend.Auto"/> has chosen.</summary>
    public FilePipeBackend Backend => FileBackend.Kind;

    /// <summary>
    /// Which file this is, whatever its name. With <see cref="Position"/> a checkpoint: what is needed to go on after a restart, and to find the file again where it was renamed
    /// meanwhile. <see langword="default"/> where the system does not tell: other than on Linux and Windows.
    /// </summary>
    /// <exception cref="ObjectDisposedException">The file is closed, and opening did not tell: on Windows, unless it was followed.</exception>
    public FileIdentity Identity => FileBackend.Identity;

    internal FileBackend FileBackend => _state.File;

    private bool ReadsAhead => _state.Options.PauseReadAheadThreshold > 0;

    private ReadWaits Waits => _waits ??= new ReadWaits(_state);

    /// <summary>Opens a file for reading and puts a reader on it, which closes it when it is completed.</summary>
    /// <param name="path">The file: absolute, or relative to the current directory. FIFOs, devices and files of /proc work.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty, or <see langword="null"/>.</exception>
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
    /// As <see cref="Create(string, FilePipeReaderOptions?)"/>, without holding up the caller: the file is opened by a thread of the library's own. A FIFO waits for its other side without
    /// a thread.
    /// </summary>
    /// <param name="path">The file: absolute, or relative to the current directory of this moment.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults.</param>
    /// <param name="cancellationToken">Ends the wait at once; a file that is opened all the same is closed again.</param>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <inheritdoc cref="Create(string, FilePipeReaderOptions?)" path="/exception"/>
    public static ValueTask<FilePipeReader> OpenAsync(string path, FilePipeReaderOptions? options = null, CancellationToken cancellationToken = default)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        ArgumentException.ThrowIfNullOrEmpty(path);
        FileBackends.ThrowIfNotSupported(options.Backend);
        string fullPath = Path.GetFullPath(path);
        FifoOpening? fifo = FifoOpening.IsSupported(options.Backend, options.Share, options.FileOptions) ? new FifoOpening(fullPath, FileAccess.Read, options.Share) : null;
        return PendingOpen<FilePipeReader>.StartAsync(
            fullPath,
            fifo,
            handle => handle is null ? Create(fullPath, options) : Create(FileBackends.OpenFifo(options.Backend, handle, fullPath), options, leaveOpen: false, isOpenedByPath: true),
            static opened => opened.Complete(),
            cancellationToken);
    }

    /// <summary>
    /// Puts a reader on an open file, which it closes when it is completed unless <see cref="FilePipeReaderOptions.LeaveOpen"/> says otherwise. Where this throws,
    /// the file stays open.
    /// </summary>
    /// <param name="handle">The file, open for reading. A file that can seek is read from <see cref="FilePipeReaderOptions.Offset"/>, wherever its own position is.</param>
    /// <param name="options">How to read; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="handle"/> is invalid, or an option is set that is for paths.</exception>
    /// <exception cref="ObjectDisposedException"><paramref name="handle"/> is closed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeReaderOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    public static FilePipeReader Create(SafeFileHandle handle, FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        options.ValidateForHandle();
        return Create(FileBackends.Attach(options.Backend, handle), options, options.LeaveOpen);
    }

    /// <summary>
    /// Puts a reader on the standard input of this process, which may be a file, a pipe, a terminal or a socket. It reads from where the shell, or whoever read before, has left off,
    /// and leaves a file at the first byte that was not consumed, so that <c>(read header; program; cat) &lt; file</c> reads every line once; it never closes it.
    /// </summary>
    /// <remarks>Not the same as <c>FilePipeReader.Create("/dev/stdin")</c>, which opens the file behind it anew, from its beginning, and fails for a socket.</remarks>
    /// <param name="options">How to read; <see langword="null"/> for the defaults. What is for a path, and <see cref="FilePipeReaderOptions.Offset"/>, cannot be set.</param>
    /// <exception cref="ArgumentException">An option is set that the shell has decided.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    /// <exception cref="IOException">There is no standard input.</exception>
    public static FilePipeReader OpenStandardInput(FilePipeReaderOptions? options = null)
    {
        options ??= FilePipeReaderOptions.Default;
        options.Validate();
        options.ValidateForHandle();
        return options.Offset != 0
            ? throw new ArgumentException("Where standard input is read from is for whoever started this process: Offset cannot be set.", nameof(options))
            : Create(FileBackends.OpenStandard(options.Backend, isOutput: false), options, leaveOpen: true);
    }

    internal static FilePipeReader Create(FileBackend backend, FilePipeReaderOptions options, bool leaveOpen, bool isOpenedByPath = false)
    {
        backend.RequireOffset(options.Offset, nameof(FilePipeReaderOptions), closeHandle: isOpenedByPath);
        if (options.Follow)
        {
            backend = FollowingBackend.Of(backend, isOpenedByPath ? backend.GivenPath : null, options.FollowInterval);
        }

        return new FilePipeReader(new ReadState(options, backend.SharesPosition ? backend.GetPosition() : options.Offset, backend), leaveOpen);
    }

    /// <summary>
    /// Gives what is buffered and not consumed, with at least one byte that was not examined before, or <see cref="ReadResult.IsCompleted"/> at the end of the file. What the system has in
    /// its cache is there when this returns; a read that waits for the device, or for the other side of a pipe, completes later. <see cref="AdvanceTo(SequencePosition, SequencePosition)"/>
    /// says what of it was used.
    /// </summary>
    /// <param name="cancellationToken">Ends the wait at once, and not the reading: what the system still reads comes with a later read.</param>
    /// <exception cref="InvalidOperationException">Another read is pending, or the reader is completed. Nothing has changed.</exception>
    /// <exception cref="IOException">Reading has failed, now or earlier.</exception>
    /// <exception cref="UnauthorizedAccessException">The same, where the system denies access.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled. The reader can be used on.</exception>
    /// <inheritdoc/>
    public override ValueTask<ReadResult> ReadAsync(CancellationToken cancellationToken = default) => ReadCoreAsync(0, cancellationToken);

    /// <inheritdoc/>
    protected override ValueTask<ReadResult> ReadAtLeastAsyncCore(int minimumSize, CancellationToken cancellationToken)
        => ReadCoreAsync(minimumSize, cancellationToken);

    /// <summary>Gives what is buffered and not examined yet. It makes no system call of its own.</summary>
    /// <inheritdoc/>
    public override bool TryRead(out ReadResult result)
    {
        lock (_state)
        {
            ThrowIfNotReadable();
            return _state.TryAnswerFromBuffer(out result);
        }
    }

    /// <inheritdoc/>
    public override void AdvanceTo(SequencePosition consumed) => AdvanceTo(consumed, consumed);

    /// <inheritdoc/>
    /// <exception cref="InvalidOperationException">A position is not one of the buffer that the last read returned, or the reader is completed. Nothing has changed.</exception>
    public override void AdvanceTo(SequencePosition consumed, SequencePosition examined)
    {
        FileSegment? freed;
        FileOperation? readAhead = null;
        bool isCompleted;
        lock (_state)
        {
            isCompleted = _isCompleted;
            if (isCompleted)
            {
                // The buffer that the caller still had is nobody's from here on.
                freed = _state.TakeOut();
            }
            else if (_stage == Stage.Copying)
            {
                throw PendingException();
            }
            else if (consumed.GetObject() is null || examined.GetObject() is null)
            {
                // The positions of an empty buffer.
                return;
            }
            else
            {
                freed = _state.AdvanceTo(consumed, examined);
                readAhead = TryBeginReadAhead();
            }
        }

        Exception? poolError = SegmentPool.Shared.Return(freed);
        StartReadAhead(readAhead);
        if (isCompleted)
        {
            throw CompletedException();
        }

        if (poolError is not null)
        {
            ExceptionDispatchInfo.Throw(poolError);
        }
    }

    /// <summary>
    /// Makes the pending, or else the next, read return at once with <see cref="ReadResult.IsCanceled"/>, also while the system call underneath goes on.
    /// Nothing that the call reads is lost: a later read returns it. A pending copy ends with <see cref="OperationCanceledException"/>.
    /// </summary>
    public override void CancelPendingRead()
    {
        PooledCompletion<ReadResult>? pending;
        ReadResult result = default;
        Cancellation cancellation = default;
        lock (_state)
        {
            _state.IsCancelRequested = _copy is null;
            pending = _waits?.TakeRead();
            if (_copy is not null)
            {
                cancellation = _copy.Cancel(new OperationCanceledException("The read was canceled."));
            }
            else if (pending is not null)
            {
                result = _state.TakeResult();
                cancellation = CancellationOfRead();
            }
        }

        cancellation.Request(FileBackend);
        pending?.CompleteNow(result, null);
    }

    /// <summary>
    /// Ends the reader and closes the file. A pending read ends at once with <see cref="InvalidOperationException"/>; its memory and the handle are released
    /// when the system is done with them, for which this does not wait. A buffer that the caller still has then stays as it is, and is given to nobody else until
    /// the caller's next <see cref="AdvanceTo(SequencePosition)"/>, which throws; without one it is left to the garbage collector.
    /// </summary>
    /// <param name="exception">Ignored: there is nobody on the other side to be told.</param>
    public override void Complete(Exception? exception = null)
    {
        PooledCompletion<ReadResult>? pending;
        Cancellation cancellation;
        UnrecordedCounts counts;
        bool release;
        lock (_state)
        {
            if (_isCompleted)
            {
                return;
            }

            _isCompleted = true;
            pending = _waits?.TakeRead();
            cancellation = _copy?.Cancel(CompletedException()) ?? CancellationOfRead();
            counts = _waits?.TakeCounts() ?? default;

            // Else whoever has the operation, or copies, releases everything when that ends.
            release = _stage == Stage.Idle;
        }

        Exception? poolError = release ? Release() : null;
        counts.Record();
        cancellation.Request(FileBackend);
        pending?.CompleteNow(default, CompletedException());
        if (poolError is not null)
        {
            ExceptionDispatchInfo.Throw(poolError);
        }
    }

    /// <summary>
    /// As <see cref="Complete"/>, and completes when memory and handle are released: when the system call that is under way, if any, has ended. Only one that can neither
    /// be given up nor ends by itself (<see cref="FilePipeBackend.Portable"/>, a pipe) is not waited for.
    /// </summary>
    /// <param name="exception">Ignored: there is nobody on the other side to be told.</param>
    public override ValueTask CompleteAsync(Exception? exception = null)
    {
        Complete(exception);
        lock (_state)
        {
            return _isReleased || !FileBackend.EndsOperations ? default : new ValueTask(Waits.AddRelease());
        }
    }

    /// <inheritdoc cref="Complete"/>
    public void Dispose() => Complete();

    /// <inheritdoc cref="CompleteAsync"/>
    public ValueTask DisposeAsync() => CompleteAsync();

    /// <summary>
    /// Copies what is buffered and the rest of the file to <paramref name="destination"/>, read straight into its own memory, with a flush after every read.
    /// Ends at the end of the file, or when the destination's reader is gone (<see cref="FlushResult.IsCompleted"/>); completes neither side.
    /// </summary>
    /// <inheritdoc/>
    public override Task CopyToAsync(PipeWriter destination, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(destination);
        FileCopy? copy = null;
        lock (_state)
        {
            ThrowIfNotReadable();
            if (cancellationToken.IsCancellationRequested)
            {
                return Task.FromCanceled(cancellationToken);
            }

            // Not where a read is under way into the reader's own memory, or will be, and not where one into the destination's memory could not be given up. Nor where the caller's
            // pool gives memory that direct I/O needs.
            if (!ReadsAhead && _stage == Stage.Idle && FileBackend.EndsOperations && (FileBackend.ReadGranularity == 1 || _state.Options.Pool is null))
            {
                _stage = Stage.Copying;
                _copy = copy = new FileCopy(FileBackend, _state.NextOffset, _state.Left);
                if (_state.IsCancelRequested)
                {
                    _state.IsCancelRequested = false;
                    _ = copy.Cancel(new OperationCanceledException("The read was canceled."));
                }
            }
        }

        return copy is null ? base.CopyToAsync(destination, cancellationToken) : CopyAsync(copy, destination, cancellationToken);
    }

    bool IFileOperationOwner.RunsCallersCode => _state.Options.Pool is not null;

    bool IFileOperationOwner.OnCompleted(FileOperation operation)
    {
        PooledCompletion<ReadResult>? pending = null;
        ReadResult result = default;
        Exception? error = null;
        FileSegment? freed;
        FileOperation? next;
        bool release;
        operation.Clear();
        lock (_state)
        {
            Waits.Count(operation);
            freed = EndRead(operation);
            release = _isCompleted;
            if (Waits.HasRead && !TryAnswer(Waits.MinimumSize, out result, out error))
            {
                next = BeginRead(Waits.MinimumSize, Stage.Started);
            }
            else
            {
                pending = Waits.TakeRead();
                next = TryBeginReadAhead();
            }
        }

        GiveBack(freed, release);
        bool again = next is not null && TryPrepare(next) is null;
        pending?.CompleteOnPool(result, error);
        return again;
    }

    private ValueTask<ReadResult> ReadCoreAsync(int minimumSize, CancellationToken cancellationToken)
    {
        PooledCompletion<ReadResult>? pending = null;
        FileOperation? operation = null;
        if (ReadsAhead)
        {
            // What was read ahead ended without anybody who waited for it.
            Volatile.Read(ref _waits)?.RecordCounts();
        }

        lock (_state)
        {
            ThrowIfNotReadable();
            if (cancellationToken.IsCancellationRequested)
            {
                return ValueTask.FromCanceled<ReadResult>(cancellationToken);
            }

            if (TryAnswer(minimumSize, out ReadResult result, out Exception? error))
            {
                return _state.Answer(result, error);
            }

            if (_stage == Stage.Started)
            {
                // A read-ahead, or what a canceled read has left behind.
                pending = Waits.AddRead(minimumSize, cancellationToken);
            }
            else
            {
                operation = BeginRead(minimumSize, Stage.Trying);
            }
        }

        return pending is null ? TryReadAsync(operation!, minimumSize, cancellationToken) : pending.EndWith(s_onTokenCanceled, this, cancellationToken);
    }

    /// <summary>Performs reads on the caller's thread for as long as they need no waiting, and until they are enough.</summary>
    private ValueTask<ReadResult> TryReadAsync(FileOperation operation, int minimumSize, CancellationToken cancellationToken)
    {
        while (true)
        {
            if (TryPrepare(operation) is { } poolError)
            {
                return ValueTask.FromException<ReadResult>(poolError);
            }

            if (!FileBackend.TryPerform(operation))
            {
                return StartReadAsync(operation, minimumSize, cancellationToken);
            }

            operation.Clear();
            FilePipeMetrics.ReadInline();
            FilePipeMetrics.Read(operation.Transferred);
            FileSegment? freed;
            FileOperation? readAhead;
            ReadResult result;
            Exception? error;
            bool isAnswered;
            bool isCanceled;
            bool release;
            lock (_state)
            {
                freed = EndRead(operation);
                release = _isCompleted;
                isAnswered = TryAnswer(minimumSize, out result, out error);
                isCanceled = !isAnswered && cancellationToken.IsCancellationRequested;
                readAhead = isAnswered ? TryBeginReadAhead() : null;
                if (!isAnswered && !isCanceled)
                {
                    BeginRead(minimumSize, Stage.Trying);
                }
            }

            GiveBack(freed, release);
            StartReadAhead(readAhead);
            if (isAnswered || isCanceled)
            {
                return isAnswered ? _state.Answer(result, error) : ValueTask.FromCanceled<ReadResult>(cancellationToken);
            }
        }
    }

    /// <summary>
    /// Hands over a read that has to wait. Also after Complete: the system may have the memory already, and the report of its end releases everything. A cancellation that
    /// came while the caller's thread was in a call found no wait to end, and ends this one before it begins.
    /// </summary>
    private ValueTask<ReadResult> StartReadAsync(FileOperation operation, int minimumSize, CancellationToken cancellationToken)
    {
        PooledCompletion<ReadResult>? pending = null;
        Cancellation cancellation = default;
        ReadResult result;
        Exception? error;
        lock (_state)
        {
            _stage = Stage.Started;
            if (TryAnswer(minimumSize, out result, out error))
            {
                cancellation = CancellationOfRead();
            }
            else
            {
                pending = Waits.AddRead(minimumSize, cancellationToken);
            }
        }

        FileBackend.Start(operation);
        cancellation.Request(FileBackend);
        return pending is null ? _state.Answer(result, error) : pending.EndWith(s_onTokenCanceled, this, cancellationToken);
    }

    private void StartReadAhead(FileOperation? operation)
    {
        if (operation is not null && TryPrepare(operation) is null)
        {
            FileBackend.Start(operation);
        }
    }

    /// <summary>
    /// Gives the read its memory. A caller's memory pool may throw here: then the read is not made, whoever waits for it gets the error, and it is returned.
    /// Called without the lock by whoever has the operation.
    /// </summary>
    private Exception? TryPrepare(FileOperation operation)
    {
        try
        {
            _state.Rent(operation);
            return null;
        }
        catch (Exception e)
        {
            PooledCompletion<ReadResult>? pending;
            FileSegment? freed;
            bool release;
            operation.Clear();
            lock (_state)
            {
                freed = _state.DropRead(operation);
                _stage = Stage.Idle;
                pending = _waits?.TakeRead();
                release = _isCompleted;
            }

            GiveBack(freed, release);
            pending?.CompleteOnPool(default, e);
            return e;
        }
    }

    private void OnTokenCanceled(CancellationToken token)
    {
        PooledCompletion<ReadResult>? pending;
        Cancellation cancellation;
        lock (_state)
        {
            pending = _waits?.TakeRead(token);
            cancellation = pending is null ? default : CancellationOfRead();
        }

        cancellation.Request(FileBackend);
        pending?.CompleteNow(default, new OperationCanceledException(token));
    }

    private async Task CopyAsync(FileCopy copy, PipeWriter destination, CancellationToken cancellationToken)
    {
        Exception? canceled;
        try
        {
            await copy.CopyToAsync(_state, destination, cancellationToken).ConfigureAwait(false);
        }
        finally
        {
            FileSegment? freed;
            bool release;
            lock (_state)
            {
                freed = _state.EndCopy(copy);
                _copy = null;
                canceled = copy.Canceled;
                _stage = Stage.Idle;
                release = _isCompleted;
            }

            copy.Dispose();
            GiveBack(freed, release);
        }

        // A cancellation that came during the last call found nothing that it could end, and would be lost.
        if (canceled is not null)
        {
            ExceptionDispatchInfo.Throw(canceled);
        }
    }

    /// <summary>Gives segments back, and where a completed reader is idle again, everything. What a caller's pool throws here concerns nobody who waits: the bytes are there.</summary>
    private void GiveBack(FileSegment? freed, bool release)
    {
        _ = SegmentPool.Shared.Return(freed);
        if (release)
        {
            Release();
        }
    }

    /// <summary>Gives memory and handle back, by the one who found the reader completed and nothing under way. Returns what a caller's memory pool threw.</summary>
    private Exception? Release()
    {
        FileSegment? freed;
        FileOperation? operation;
        lock (_state)
        {
            freed = _state.Release();
            operation = _operation;
            _operation = null;
        }

        operation?.Return();
        Exception? poolError = SegmentPool.Shared.Return(freed);
        if (FileBackend.SharesPosition)
        {
            FileBackend.SetPosition(Position);
        }

        FileBackend.Release(closeHandle: !_leaveOpen);
        ReadWaits? waits;
        lock (_state)
        {
            _isReleased = true;
            waits = _waits;
        }

        waits?.EndRelease();
        return poolError;
    }

    // What follows is called under the lock.

    /// <summary>Sets a read up. The rest of its memory is given to it by <see cref="TryPrepare"/>.</summary>
    private FileOperation BeginRead(int minimumSize, Stage next)
    {
        FileOperation operation = _operation ??= FileBackend.Rent(this);
        _state.BeginRead(operation, minimumSize);
        _stage = next;
        return operation;
    }

    private FileOperation? TryBeginReadAhead()
        => ReadsAhead && _stage == Stage.Idle && !_isCompleted && _state.WantsReadAhead() ? BeginRead(0, Stage.Started) : null;

    private FileSegment? EndRead(FileOperation operation)
    {
        _stage = Stage.Idle;
        return _state.EndRead(operation);
    }

    private bool TryAnswer(int minimumSize, out ReadResult result, out Exception? error)
    {
        if (!_isCompleted)
        {
            return _state.TryAnswer(minimumSize, out result, out error);
        }

        result = default;
        error = CompletedException();
        return true;
    }

    /// <summary>A read that nobody waits for any more is given up, unless it reads ahead.</summary>
    private Cancellation CancellationOfRead() => _stage == Stage.Started && (_isCompleted || !ReadsAhead) ? new Cancellation(_operation!) : default;

    private void ThrowIfNotReadable()
    {
        if (_isCompleted)
        {
            throw CompletedException();
        }

        if (_waits is { HasRead: true } || _stage is Stage.Trying or Stage.Copying)
        {
            throw PendingException();
        }
    }

    private static InvalidOperationException CompletedException() => new("Reading is not allowed after the reader was completed.");

    private static InvalidOperationException PendingException() => new("Another read is pending: a reader serves one at a time.");
}
