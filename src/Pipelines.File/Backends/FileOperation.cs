using Pipelines.File.Buffers;
using Pipelines.File.Waiting;

namespace Pipelines.File.Backends;

/// <summary>What a <see cref="FileOperation"/> asks of the back end.</summary>
internal enum FileOperationKind
{
    Read,
    Write,
    Sync,
    Copy,

    /// <summary>A call that waits and moves no bytes: a name, a folder's sync.</summary>
    Step,
}

/// <summary>Whoever a finished operation is reported to: a reader, a writer, a copy.</summary>
internal interface IFileOperationOwner
{
    /// <summary>
    /// Called once for each <see cref="FileBackend.Start"/>, when the system is done with the operation's memory. Returns <see langword="true"/> where the owner has
    /// set the operation up again and wants it performed by this very thread.
    /// </summary>
    bool OnCompleted(FileOperation operation);

    /// <summary>
    /// Whether <see cref="OnCompleted"/> may run a caller's code, that of its memory pool above all: then it is called on a thread of the application's pool, and
    /// else on whatever thread the operation ends.
    /// </summary>
    bool RunsCallersCode => false;
}

/// <summary>
/// One system call to be made: what, where, with which memory, and what came of it. It carries what every back end needs; each back end derives its own, with what it alone needs.
/// It belongs to its owner until <see cref="FileBackend.Start"/>, to the back end until <see cref="IFileOperationOwner.OnCompleted"/>, and to the owner again from there on.
/// Reusable, and pooled by its back end.
/// </summary>
internal abstract class FileOperation : IWaitingCall, IThreadPoolWorkItem
{
    /// <summary>The buffers of an operation that goes back to a pool as it is; one that had more lets go of them.</summary>
    internal const int MaxPooledBuffers = 256;

    private TransferBuffer[] _buffers = new TransferBuffer[16];
    private int _generation;
    private bool _needsPins;

    // The segments that a read fills, first to last.
    private FileSegment? _firstSegment;
    private FileSegment? _lastSegment;

    // What the system has not supported while the operation was performed; whose the operation is.
    private string? _fallbackCall;
    private int _fallbackError;

    internal IFileOperationOwner? Owner { get; private set; }

    /// <summary>
    /// Which use of this object is meant, by <see cref="FileBackend.Cancel"/>: operations are reused, and a cancellation may come late. Written by the owner, read by anybody.
    /// </summary>
    internal int Generation => Volatile.Read(ref _generation);

    internal FileOperationKind Kind { get; private set; }

    /// <summary>The file offset, bytes; not used where the file cannot seek.</summary>
    internal long Offset { get; private set; }

    /// <summary>For <see cref="FileOperationKind.Copy"/>: the file, and the offset there, that the bytes go to.</summary>
    internal FileBackend? Destination { get; private set; }

    /// <inheritdoc cref="Destination"/>
    internal long DestinationOffset { get; private set; }

    /// <summary>For <see cref="FileOperationKind.Step"/>: what is called.</summary>
    internal Action? Step { get; private set; }

    /// <summary>How many bytes are asked for: the sum of the buffers, or of the copy.</summary>
    internal long Length { get; private set; }

    /// <summary>
    /// Goes where syncs go: a write that one follows, so that one thread does both, or that may wait for whoever reads it; a read that nothing has begun yet.
    /// </summary>
    internal bool NeedsOwnThread { get; set; }

    internal int BufferCount { get; private set; }

    /// <summary>A read: bytes that it asks for and that have no memory yet.</summary>
    internal long Unrented { get; set; }

    /// <summary>What came of it: the bytes that moved; 0 for a read is the end of the file.</summary>
    internal long Transferred { get; private set; }

    /// <summary>What came of it: the error, if any.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>What came of it: ended by <see cref="FileBackend.Cancel"/> before anything moved.</summary>
    internal bool IsCanceled { get; private set; }

    WaitKind IWaitingCall.WaitKind => WaitKind;

    IWaitingCall? IWaitingCall.NextCall { get; set; }

    long IWaitingCall.QueuedAt { get; set; }

    internal ReadOnlySpan<TransferBuffer> Buffers => _buffers.AsSpan(0, BufferCount);

    internal ReadOnlyMemory<byte> FirstBuffer => _buffers[0].Memory;

    /// <summary>What kind of wait it is, as far as every back end knows.</summary>
    protected virtual WaitKind WaitKind => Kind switch
    {
        FileOperationKind.Read when !NeedsOwnThread => WaitKind.Read,
        FileOperationKind.Write when !NeedsOwnThread => WaitKind.Write,
        FileOperationKind.Copy => WaitKind.Read,
        _ => WaitKind.Sync,
    };

    /// <summary>Whether it is small enough to be kept for reuse.</summary>
    protected bool IsPoolable => _buffers.Length <= MaxPooledBuffers;

    /// <summary>The owner sets it up anew; memory is added afterwards.</summary>
    internal void Begin(FileOperationKind kind, long offset)
    {
        Volatile.Write(ref _generation, _generation + 1);
        Kind = kind;
        Offset = offset;
        Length = 0;
        NeedsOwnThread = false;
    }

    /// <summary>The owner sets it up anew: copies <paramref name="length"/> bytes from one file to another.</summary>
    internal void BeginCopy(long offset, FileBackend destination, long destinationOffset, long length)
    {
        Begin(FileOperationKind.Copy, offset);
        Destination = destination;
        DestinationOffset = destinationOffset;
        Length = length;
    }

    /// <summary>The owner sets it up anew: makes a call on a thread that may wait.</summary>
    /// <param name="step">Throws what it fails with: an <see cref="IOException"/> or <see cref="UnauthorizedAccessException"/>.</param>
    internal void BeginStep(Action step)
    {
        Begin(FileOperationKind.Step, offset: 0);
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
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or ObjectDisposedException)
        {
            Finish(e);
        }
    }

    /// <summary>Adds memory to read into or write from; <paramref name="address"/> is its address where that never changes, else 0.</summary>
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
        _needsPins |= address == 0;
    }

    /// <summary>Adds a part of a segment.</summary>
    internal void Add(FileSegment segment, int start, int length)
        => Add(segment.Buffer.Slice(start, length), segment.Address == 0 ? 0 : segment.Address + start);

    /// <summary>Adds the beginning of a segment for a read to fill. The operation has the segment until <see cref="TakeSegments"/>.</summary>
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

    /// <summary>The list of the segments that a read was given, filled or not.</summary>
    internal FileSegment? TakeSegments()
    {
        FileSegment? segments = _firstSegment;
        _firstSegment = _lastSegment = null;
        return segments;
    }

    /// <summary>
    /// Gives every buffer an address until <see cref="Clear"/>. Runs the code of whoever the memory is from, so the owner calls it on a thread of the application's,
    /// without a lock, before it hands the operation over. Where that code throws, <see cref="Clear"/> undoes what was pinned.
    /// </summary>
    internal unsafe void Pin()
    {
        if (!_needsPins)
        {
            return;
        }

        foreach (ref TransferBuffer buffer in _buffers.AsSpan(0, BufferCount))
        {
            if (buffer.Address == 0 && buffer.Memory.Length > 0)
            {
                buffer.Handle = buffer.Memory.Pin();
                buffer.Address = (nint)buffer.Handle.Pointer;
                buffer.IsPinned = true;
            }
        }
    }

    /// <summary>Forgets the memory of the last call. As <see cref="Pin"/> it runs foreign code; what that throws is dropped, as the call it belonged to is over.</summary>
    internal void Clear()
    {
        if (_needsPins)
        {
            foreach (ref TransferBuffer buffer in _buffers.AsSpan(0, BufferCount))
            {
                if (buffer.IsPinned)
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
            }
        }

        _needsPins = false;
        Array.Clear(_buffers, 0, BufferCount);
        BufferCount = 0;
        Destination = null;
        Step = null;
    }

    /// <summary>Records success. Called by whoever performs it, once, when the system no longer uses the memory.</summary>
    internal void Finish(long transferred) => Finish(transferred, error: null, isCanceled: false);

    /// <summary>Records failure, as <see cref="Finish(long)"/> does success.</summary>
    internal void Finish(Exception error) => Finish(0, error, isCanceled: false);

    /// <summary>Records that it was given up before anything moved.</summary>
    internal void FinishCanceled() => Finish(0, error: null, isCanceled: true);

    /// <summary>Whoever performs it has fallen back to another call: for the counters.</summary>
    internal void FellBack(string call, int error)
    {
        _fallbackCall = call;
        _fallbackError = error;
    }

    /// <summary>What <see cref="FellBack"/> has said last, if anything.</summary>
    internal string? TakeFallback(out int error)
    {
        string? call = _fallbackCall;
        error = _fallbackError;
        _fallbackCall = null;
        return call;
    }

    /// <summary>Has it performed by a waiting thread.</summary>
    internal virtual void Queue() => WaitingThreads.Shared.Queue(this);

    /// <summary>
    /// Reports it from a thread of the library's own, which no caller's code may run on. <see langword="true"/>: the owner wants it performed again, by this very thread.
    /// </summary>
    internal bool Report()
    {
        if (!Owner!.RunsCallersCode)
        {
            return Owner.OnCompleted(this);
        }

        ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
        return false;
    }

    /// <summary>The report that may run a caller's code.</summary>
    void IThreadPoolWorkItem.Execute()
    {
        if (Owner!.OnCompleted(this))
        {
            QueueAgain();
        }
    }

    bool IWaitingCall.Perform() => Perform();

    /// <summary>Performs it on a waiting thread and reports it, unless something else has yet to happen. <see langword="true"/>: it is to be performed again.</summary>
    protected abstract bool Perform();

    /// <summary>Has it performed again, as its owner has more, and wants it from another thread than the one that performed it.</summary>
    protected virtual void QueueAgain() => Queue();

    /// <summary>Gives it back to its back end. Only its owner may, and only while no back end performs it.</summary>
    internal void Return()
    {
        Clear();
        Error = null;
        Owner = null;

        // A cancellation of the last use must not meet the next one.
        Volatile.Write(ref _generation, _generation + 1);
        Recycle();
    }

    /// <summary>A back end rents it out.</summary>
    protected void Lend(IFileOperationOwner owner) => Owner = owner;

    /// <summary>Keeps it for reuse, or lets go of it.</summary>
    protected abstract void Recycle();

    private void Finish(long transferred, Exception? error, bool isCanceled)
    {
        Transferred = transferred;
        Error = error;
        IsCanceled = isCanceled;
    }
}

/// <summary>One piece of memory of an operation.</summary>
internal struct TransferBuffer
{
    internal ReadOnlyMemory<byte> Memory;

    /// <summary>Where it is; 0 until it is pinned.</summary>
    internal nint Address;

    /// <summary>Keeps it there while the operation runs, where nothing else does.</summary>
    internal System.Buffers.MemoryHandle Handle;

    /// <summary>Whether <see cref="Handle"/> is to be disposed when the operation ends.</summary>
    internal bool IsPinned;
}
