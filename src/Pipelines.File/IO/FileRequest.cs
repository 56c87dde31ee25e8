using Pipelines.File.Diagnostics;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>What a <see cref="FileRequest"/> asks of the back end.</summary>
internal enum FileRequestKind
{
    Read,
    Write,
    Sync,

    /// <summary>A call that waits and moves no bytes: a name, a folder's sync.</summary>
    Step,
}

/// <summary>
/// One system call to be made: what, where, with which memory, and what came of it.
/// It belongs to who rented it until <see cref="OpenedFile.RunAsync"/> is awaited, to the file until that is over, and to who rented it
/// again from there on. Reusable, and pooled.
/// </summary>
/// <remarks>
/// It is the source of the wait that <see cref="OpenedFile.RunAsync"/> hands out. A run begins when it is awaited, so the continuation is
/// there before the call is made, and always runs on the thread that has performed the call: no race is to be settled, and no thread of the
/// application's pool is needed.
/// </remarks>
internal class FileRequest : IWaitingCall, IThreadPoolWorkItem, IValueTaskSource
{
    /// <summary>The buffers of an operation that goes back to a pool as it is; one that had more lets go of them.</summary>
    internal const int MaxPooledBuffers = 256;

    private const int MaxPooled = 64;

    // Those that wait to be used again, so that a file costs none. Guarded by itself.
    private static readonly Stack<FileRequest> s_free = new();

    // The run that is asked for or under way. Owned as the request is.
    private OpenedFile? _runner;
    private Action<object?>? _continuation;
    private object? _continuationState;

    // Interlocked: which use waits for a thread of the pool to go on on, or 0.
    private long _resumable;

    private TransferBuffer[] _buffers = new TransferBuffer[16];
    private int _generation;

    // The segments that a read fills, first to last.
    private FileSegment? _firstSegment;
    private FileSegment? _lastSegment;

    /// <summary>
    /// Which use of this object is meant, by <see cref="OpenedFile.Cancel"/>: operations are reused, and a cancellation may come late.
    /// Written by the owner, read by anybody.
    /// </summary>
    public int Generation => Volatile.Read(ref _generation);

    /// <summary>
    /// The use of it that was canceled, for a file that ends such waits by itself. Guarded by the lock of that file, or of its poller.
    /// </summary>
    internal int CanceledGeneration { get; set; } = -1;

    /// <summary>Whether this use of it is canceled. Guarded likewise.</summary>
    internal bool IsCancelWanted => CanceledGeneration == Generation;

    /// <summary>
    /// The file whose readiness it waits for, held open until then; <see langword="null"/> while it does not wait. The poller guards it.
    /// </summary>
    internal SafeFileHandle? Polled { get; set; }

    internal FileRequestKind Kind { get; private set; }

    /// <summary>The file offset, bytes; not used where the file cannot seek.</summary>
    internal long Offset { get; private set; }

    /// <summary>For <see cref="FileRequestKind.Step"/>: what is called.</summary>
    internal Action? Step { get; private set; }

    /// <summary>How many bytes are asked for: the sum of the buffers.</summary>
    internal long Length { get; private set; }

    /// <summary>
    /// A write that goes where syncs go: one that a sync follows, so that one thread does both, or that may wait for whoever reads it.
    /// </summary>
    internal bool NeedsOwnThread { get; set; }

    public bool IsAwaited { get; set; }

    internal int BufferCount { get; private set; }

    /// <summary>A read: bytes that it asks for and that have no memory yet.</summary>
    internal long Unrented { get; set; }

    /// <summary>What came of it: the bytes that moved; 0 for a read is the end of the file.</summary>
    internal long Transferred { get; private set; }

    /// <summary>What came of it: the error, if any.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>What came of it: ended by <see cref="OpenedFile.Cancel"/> before anything moved.</summary>
    internal bool IsCanceled { get; private set; }

    /// <summary>A read: if fewer bytes moved than were asked for, they end where the file does. Set by whoever performs it.</summary>
    internal bool IsShortAtEnd { get; set; }

    /// <summary>
    /// A read whose owner takes what it asked for in parts, in file order, and adds memory for more while the file goes on with the rest.
    /// Set by whoever rents it.
    /// </summary>
    internal bool Slides { get; set; }

    /// <summary>
    /// What came of a read that slides: the file goes on with the bytes behind <see cref="Transferred"/>, and the owner runs the request
    /// again, with or without more memory. From <see cref="Clear"/> on it is the request for these bytes. Set by whoever performs it.
    /// </summary>
    internal bool IsUnderWay { get; set; }

    /// <summary>
    /// Whether what follows <see cref="OpenedFile.RunAsync"/> goes on on a thread of the application's pool, as it runs a caller's code,
    /// and not on the one that performed the call. Set by whoever rents it.
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

    /// <summary>The first buffer, which is pinned, without a call of the code that its memory is from.</summary>
    internal unsafe Span<byte> PinnedBytes => new((void*)_buffers[0].Address, _buffers[0].Memory.Length);

    /// <summary>One piece of its memory; not a span of them all, which the runtime would have to compile in every process.</summary>
    internal ref readonly TransferBuffer BufferAt(int index) => ref _buffers[index];

    internal static FileRequest Rent()
    {
        lock (s_free)
        {
            return s_free.TryPop(out FileRequest? request) ? request : new FileRequest();
        }
    }

    /// <summary>The owner sets it up anew; memory is added afterwards.</summary>
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

    /// <summary>The owner sets it up anew: makes a call on a thread that may wait.</summary>
    /// <param name="step">Throws what it fails with: an <see cref="IOException"/> or <see cref="UnauthorizedAccessException"/>.</param>
    internal void BeginStep(Action step)
    {
        Begin(FileRequestKind.Step, offset: 0);
        Step = step;
    }

    /// <summary>A back end performs the step, on a thread that may wait.</summary>
    internal void PerformStep()
    {
        try
        {
            Step!();
            Finish(0);
        }
        catch (Exception e)
        {
            // There is no other way to report it: an exception that leaves a waiting thread ends the process.
            Finish(e);
        }
    }

    /// <summary>
    /// Adds memory to read into or write from; <paramref name="address"/> is its address where that never changes, else 0.
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
    /// Adds the beginning of a segment for a read to fill. The operation has the segment until <see cref="TakeSegments"/>.
    /// </summary>
    internal void AddToFill(FileSegment segment, int length)
    {
        segment.NextSegment = null;
        if (_lastSegment is null)
        {
            _firstSegment = segment;
        }
        else
        {
            _lastSegment.NextSegment = segment;
        }

        _lastSegment = segment;
        Add(segment, 0, length);
    }

    /// <summary>The list of the segments that a read was given, filled or not; of one that is under way those that it has filled.</summary>
    /// <param name="filled">What they have of it, bytes.</param>
    internal FileSegment? TakeSegments(long filled)
    {
        FileSegment? segments = _firstSegment;
        if (!IsUnderWay)
        {
            _firstSegment = _lastSegment = null;
            return segments;
        }

        FileSegment? last = null;
        for (; filled > 0; filled -= last.Capacity)
        {
            last = _firstSegment!;
            _firstSegment = last.NextSegment;
        }

        if (last is null)
        {
            return null;
        }

        last.NextSegment = null;
        return segments;
    }

    /// <summary>
    /// Gives every buffer an address until <see cref="Clear"/>. Runs the code of whoever the memory is from, so the owner calls it on a
    /// thread of the application's, without a lock, before it hands the operation over. Where that code throws, <see cref="Clear"/> undoes
    /// what was pinned.
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
    /// Forgets the memory of the last call; of a read that is under way that of the bytes that it has told of. As <see cref="Pin"/> it runs
    /// foreign code; what that throws is dropped, as the call it belonged to is over.
    /// </summary>
    internal void Clear()
    {
        int count = BufferCount;
        if (IsUnderWay)
        {
            Offset += Transferred;
            Length -= Transferred;
            count = 0;
            for (long left = Transferred; left > 0; count++)
            {
                left -= _buffers[count].Memory.Length;
            }
        }

        foreach (ref TransferBuffer buffer in _buffers.AsSpan(0, count))
        {
            try
            {
                buffer.Handle.Dispose();
            }
            catch (Exception)
            {
                // The other buffers are to be unpinned all the same.
            }
        }

        BufferCount -= count;
        if (BufferCount > 0)
        {
            Array.Copy(_buffers, count, _buffers, 0, BufferCount);
        }

        Array.Clear(_buffers, BufferCount, count);
        Step = null;
    }

    /// <summary>Records success. Called by whoever performs it, once, when the system no longer uses the memory.</summary>
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

    /// <summary>Records failure, as <see cref="Finish(long)"/> does success.</summary>
    internal void Finish(Exception error) => (Transferred, Error, IsCanceled) = (0, error, false);

    /// <summary>Records that it was given up before anything moved.</summary>
    internal void FinishCanceled() => (Transferred, Error, IsCanceled) = (0, null, true);

    /// <summary>Has it performed by a waiting thread.</summary>
    internal virtual void Queue() => WaitingThreads.Shared.Queue(this);

    /// <summary>The wait for one run by that file, which begins when it is awaited.</summary>
    internal ValueTask RunBy(OpenedFile file)
    {
        _runner = file;
        return new ValueTask(this, token: 0);
    }

    /// <summary>
    /// The system is done with its memory, and what came of it is recorded: it belongs to who awaits it, whose continuation runs here,
    /// within this call.
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

    /// <summary>Goes on on this thread, which is the application's, if that use of the request waits for a thread of the pool.</summary>
    internal void Resume(int generation)
    {
        long use = ResumableBy(generation);
        if (Interlocked.CompareExchange(ref _resumable, 0, use) == use)
        {
            EndRun();
        }
    }

    // Never 0, also where generations begin anew.
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
        // Nothing where somebody else was faster.
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

    /// <summary>What it waits for without a thread may be there: called once for each such wait that is not canceled.</summary>
    internal virtual void OnReady() => _runner!.OnReady(this);

    /// <summary>Gives it back. Only its owner may, and only while no back end performs it.</summary>
    internal void Return()
    {
        Clear();
        Error = null;
        ResumesOnPool = false;
        Slides = false;

        // A cancellation of the last use must not meet the next one.
        Volatile.Write(ref _generation, _generation + 1);
        Recycle();
    }

    /// <summary>Keeps it for reuse, or lets go of it.</summary>
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

/// <summary>One piece of memory of an operation.</summary>
internal struct TransferBuffer
{
    internal ReadOnlyMemory<byte> Memory;

    /// <summary>Where it is; 0 until it is pinned.</summary>
    internal nint Address;

    /// <summary>Keeps it there while the operation runs, where nothing else does; else the default, whose disposal does nothing.</summary>
    internal System.Buffers.MemoryHandle Handle;
}
