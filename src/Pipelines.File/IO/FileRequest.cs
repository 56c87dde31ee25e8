using Pipelines.File.Diagnostics;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>The kind of a <see cref="FileRequest"/>.</summary>
internal enum FileRequestKind
{
    Read,
    Write,
    Sync,

    /// <summary>A call that may block and transfers no bytes, such as a rename or the sync of a folder.</summary>
    Step,
}

/// <summary>
/// One system call: what, where, with which memory, and its result. Whoever rented it owns it until <see cref="OpenedFile.RunAsync"/> is
/// awaited, and again when that is over; in between the file owns it. Reusable, and pooled.
/// </summary>
/// <remarks>
/// The object is the value-task source of <see cref="OpenedFile.RunAsync"/>. A run begins when that is awaited, so the continuation is set
/// before the call is made, and there is no race to settle. The continuation runs on the thread that completes the run, so no thread of the
/// application's pool is needed, unless <see cref="ResumesOnPool"/> asks for one.
/// </remarks>
internal class FileRequest : IWaitingCall, IThreadPoolWorkItem, IValueTaskSource
{
    /// <summary>The maximum number of buffers of a pooled request; one with more is not pooled.</summary>
    internal const int MaxPooledBuffers = 256;

    private const int MaxPooled = 64;

    // The pool, so that a file allocates no request. Guarded by itself.
    private static readonly Stack<FileRequest> s_free = new();

    // The file that performs the current run, and the continuation. Owned as the request is.
    private OpenedFile? _runner;
    private Action<object?>? _continuation;
    private object? _continuationState;

    // Interlocked: which use waits for a pool thread to continue on (ResumableBy of its generation), or 0.
    private long _resumable;

    private TransferBuffer[] _buffers = new TransferBuffer[16];
    private int _generation;

    /// <summary>
    /// The number of the current use, for <see cref="OpenedFile.Cancel"/>: requests are reused, and a cancellation may come late. The owner
    /// writes it, any thread reads it.
    /// </summary>
    public int Generation => Volatile.Read(ref _generation);

    /// <summary>
    /// The generation that was canceled, for a file that can end such waits itself. Written under the lock of that file, or of the poller.
    /// </summary>
    internal int CanceledGeneration { get; set; } = -1;

    /// <summary>
    /// Whether the current use is canceled. Read under the same lock; only <see cref="OverlappedFile"/> reads it without, before and after
    /// it has begun the call.
    /// </summary>
    internal bool IsCancelWanted => CanceledGeneration == Generation;

    /// <summary>
    /// The file whose readiness the request waits for, with a reference that keeps it open; <see langword="null"/> while it does not wait.
    /// Guarded by the poller.
    /// </summary>
    internal SafeFileHandle? Polled { get; set; }

    internal FileRequestKind Kind { get; private set; }

    /// <summary>The file offset, bytes; not used if the file cannot seek.</summary>
    internal long Offset { get; private set; }

    /// <summary>The call of a <see cref="FileRequestKind.Step"/>.</summary>
    internal Action? Step { get; private set; }

    /// <summary>The number of bytes that are asked for: the sum of the buffers.</summary>
    internal long Length { get; private set; }

    /// <summary>
    /// Whether a write is performed as a sync is (<see cref="WaitKind.Sync"/>): because a sync follows, so that one thread does both, or
    /// because it may wait for whoever reads the file.
    /// </summary>
    internal bool NeedsOwnThread { get; set; }

    public bool IsAwaited { get; set; }

    internal int BufferCount { get; private set; }

    /// <summary>Result: the number of bytes transferred; 0 for a read is the end of the file.</summary>
    internal long Transferred { get; private set; }

    /// <summary>Result: the error, if any.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>Result: whether <see cref="OpenedFile.Cancel"/> ended it before any byte was transferred.</summary>
    internal bool IsCanceled { get; private set; }

    /// <summary>A read: whether fewer bytes than asked for mean the end of the file. Set by whoever performs it.</summary>
    internal bool IsShortAtEnd { get; set; }

    /// <summary>
    /// Whether the code after <see cref="OpenedFile.RunAsync"/> runs on a thread of the application's pool, because it runs a caller's
    /// code, and not on the thread that performed the call. Set by whoever rents the request.
    /// </summary>
    internal bool ResumesOnPool { get; set; }

    WaitKind IWaitingCall.WaitKind => Kind switch
    {
        FileRequestKind.Read => WaitKind.Read,
        FileRequestKind.Write when !NeedsOwnThread => WaitKind.Write,
        _ => WaitKind.Sync,
    };

    long IWaitingCall.QueuedAt { get; set; }

    internal ReadOnlyMemory<byte> FirstBuffer => _buffers[0].Memory;

    /// <summary>The first buffer, by its pinned address, so that no code of a caller's MemoryManager runs.</summary>
    internal unsafe Span<byte> PinnedBytes => new((void*)_buffers[0].Address, _buffers[0].Memory.Length);

    /// <summary>One buffer. Not a span of all, whose generic code the JIT would have to compile in every process.</summary>
    internal ref readonly TransferBuffer BufferAt(int index) => ref _buffers[index];

    internal static FileRequest Rent()
    {
        lock (s_free)
        {
            return s_free.TryPop(out FileRequest? request) ? request : new FileRequest();
        }
    }

    /// <summary>Prepares the request for another use. Called by the owner, which adds the memory afterwards.</summary>
    internal void Begin(FileRequestKind kind, long offset)
    {
        Volatile.Write(ref _generation, _generation + 1);
        Kind = kind;
        Offset = offset;
        Length = 0;
        NeedsOwnThread = false;
        IsAwaited = false;
        IsShortAtEnd = false;
    }

    /// <summary>Prepares the request for a call on a thread that may block. Called by the owner.</summary>
    /// <param name="step">
    /// The call. It throws an <see cref="IOException"/> or <see cref="UnauthorizedAccessException"/> if it fails.
    /// </param>
    internal void BeginStep(Action step)
    {
        Begin(FileRequestKind.Step, offset: 0);
        Step = step;
    }

    /// <summary>Performs the step. Called by a back end, on a thread that may block.</summary>
    internal void PerformStep()
    {
        try
        {
            Step!();
            Finish(0);
        }
        catch (Exception e)
        {
            // Every exception is reported as the result: one that leaves a waiting thread would end the process.
            Finish(e);
        }
    }

    /// <summary>
    /// Adds memory to read into or to write. <paramref name="address"/> is its address if the memory never moves, else 0.
    /// </summary>
    internal void Add(ReadOnlyMemory<byte> memory, nint address)
    {
        if (BufferCount == _buffers.Length)
        {
            Array.Resize(ref _buffers, BufferCount * 2);
        }

        ref TransferBuffer buffer = ref _buffers[BufferCount++];
        buffer.Memory = memory;
        buffer.Address = address;
        Length += memory.Length;
    }

    /// <summary>Adds a part of a segment.</summary>
    internal void Add(FileSegment segment, int start, int length)
        => Add(segment.Buffer.Slice(start, length), segment.Address == 0 ? 0 : segment.Address + start);

    /// <summary>
    /// Pins every buffer until <see cref="Clear"/>. Runs the code of the memory's owner, so the request's owner calls it on a thread of the
    /// application, without a lock, before it runs the request. If that code throws, <see cref="Clear"/> unpins what was pinned.
    /// </summary>
    internal unsafe void Pin()
    {
        foreach (ref TransferBuffer buffer in _buffers.AsSpan(0, BufferCount))
        {
            if (buffer.Address == 0 && buffer.Memory.Length > 0)
            {
                buffer.Handle = buffer.Memory.Pin();
                buffer.Address = (nint)buffer.Handle.Pointer;
            }
        }
    }

    /// <summary>
    /// Removes and unpins the memory of the last call. Runs the code of the memory's owner, as <see cref="Pin"/> does. Exceptions of that
    /// code are dropped, because the call is over.
    /// </summary>
    internal void Clear()
    {
        foreach (ref TransferBuffer buffer in _buffers.AsSpan(0, BufferCount))
        {
            try
            {
                buffer.Handle.Dispose();
            }
            catch (Exception)
            {
                // The other buffers are unpinned all the same.
            }
        }

        Array.Clear(_buffers, 0, BufferCount);
        BufferCount = 0;
        Step = null;
    }

    /// <summary>Records success. Called once, by whoever performs the request, when the system does not use the memory any more.</summary>
    internal void Finish(long transferred)
    {
        (Transferred, Error, IsCanceled) = (transferred, null, false);
        switch (Kind)
        {
            case FileRequestKind.Read when transferred > 0:
                FilePipeMetrics.BytesRead.Add(transferred);
                break;
            case FileRequestKind.Write when transferred > 0:
                FilePipeMetrics.Writes.Add();
                FilePipeMetrics.BytesWritten.Add(transferred);
                break;
            case FileRequestKind.Sync:
                FilePipeMetrics.Syncs.Add();
                break;
        }
    }

    /// <summary>Records failure; called as <see cref="Finish(long)"/> is.</summary>
    internal void Finish(Exception error) => (Transferred, Error, IsCanceled) = (0, error, false);

    /// <summary>Records that the request was canceled before any byte was transferred.</summary>
    internal void FinishCanceled() => (Transferred, Error, IsCanceled) = (0, null, true);

    /// <summary>Queues the request to the waiting threads.</summary>
    internal virtual void Queue() => WaitingThreads.Shared.Queue(this);

    /// <summary>Returns the task of one run by the file. The run begins when the task is awaited.</summary>
    internal ValueTask RunBy(OpenedFile file)
    {
        _runner = file;
        return new ValueTask(this, token: 0);
    }

    /// <summary>
    /// Ends the run, when the system does not use the memory any more and the result is recorded. The request belongs to its owner again.
    /// The continuation runs within this call, or on the pool with <see cref="ResumesOnPool"/>.
    /// </summary>
    internal void Complete()
    {
        if (ResumesOnPool)
        {
            Volatile.Write(ref _resumable, ResumableBy(_generation));
            ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
        }
        else
        {
            EndRun();
        }
    }

    /// <summary>
    /// Runs the continuation on this thread, which is the application's, if that use of the request waits for a thread of the pool.
    /// </summary>
    internal void Resume(int generation)
    {
        long use = ResumableBy(generation);
        if (Interlocked.CompareExchange(ref _resumable, 0, use) == use)
        {
            EndRun();
        }
    }

    // Never 0, even if the generation is 0.
    private static long ResumableBy(int generation) => (1L << 32) | (uint)generation;

    private void EndRun()
    {
        Action<object?> continuation = _continuation!;
        object? state = _continuationState;
        _runner = null;
        _continuation = null;
        _continuationState = null;
        continuation(state);
    }

    void IThreadPoolWorkItem.Execute()
    {
        // Nothing to do if Resume was faster.
        if (Interlocked.Exchange(ref _resumable, 0) != 0)
        {
            EndRun();
        }
    }

    void IValueTaskSource.GetResult(short token) => Debug.Assert(_runner is null);

    ValueTaskSourceStatus IValueTaskSource.GetStatus(short token) => _runner is null ? ValueTaskSourceStatus.Succeeded
        : ValueTaskSourceStatus.Pending;

    void IValueTaskSource.OnCompleted(Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags)
    {
        _continuation = continuation;
        _continuationState = state;
        FilePipeMetrics.ReadsHandedOver.Add(Kind == FileRequestKind.Read ? 1 : 0);
        _runner!.Start(this);
    }

    void IWaitingCall.Perform() => _runner!.Perform(this);

    /// <summary>
    /// Called when the file that the request waits for without a thread may be ready: once for each such wait that is not canceled.
    /// </summary>
    internal virtual void OnReady() => _runner!.OnReady(this);

    /// <summary>Returns the request to its pool. Called by its owner, while no back end performs it.</summary>
    internal void Return()
    {
        Clear();
        Error = null;
        ResumesOnPool = false;

        // A late cancellation of the last use must not cancel the next one.
        Volatile.Write(ref _generation, _generation + 1);
        Recycle();
    }

    /// <summary>Pools the request, or drops it.</summary>
    protected virtual void Recycle()
    {
        lock (s_free)
        {
            if (_buffers.Length <= MaxPooledBuffers && s_free.Count < MaxPooled)
            {
                s_free.Push(this);
            }
        }
    }
}

/// <summary>One buffer of a request.</summary>
internal struct TransferBuffer
{
    internal ReadOnlyMemory<byte> Memory;

    /// <summary>Its address; 0 until it is pinned.</summary>
    internal nint Address;

    /// <summary>Pins the memory while the request runs, if it can move; else the default, whose disposal does nothing.</summary>
    internal System.Buffers.MemoryHandle Handle;
}
