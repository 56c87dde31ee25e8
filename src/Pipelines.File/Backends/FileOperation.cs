using System.Buffers;
using System.Diagnostics;
using Pipelines.File.Buffers;

namespace Pipelines.File.Backends;

/// <summary>What a <see cref="FileOperation"/> asks of the back end.</summary>
internal enum FileOperationKind
{
    Read,
    Write,
    Sync,
    Copy,
}

/// <summary>Whoever a finished operation is reported to: a reader, a writer, a copy.</summary>
internal interface IFileOperationOwner
{
    /// <summary>
    /// Called once for each start, on the thread that finished the operation, when the system is done with its memory. Returns
    /// <see langword="true"/> where the owner has set the operation up again and wants it performed by this very thread.
    /// </summary>
    bool OnCompleted(FileOperation operation);
}

/// <summary>
/// One system call to be made: what, where, with which memory, and what came of it. Reusable; pooled, so that a file costs none. It belongs to its owner until
/// <see cref="FileBackend.Start"/>, to the back end until <see cref="IFileOperationOwner.OnCompleted"/>, and to the owner again from there on.
/// </summary>
internal sealed class FileOperation : IThreadPoolWorkItem
{
    /// <summary>The buffers of an operation that goes back to the pool as it is; one that had more lets go of them.</summary>
    internal const int MaxPooledBuffers = 256;

    private const int MaxPooled = 64;

    // Guards s_pool and s_pooled.
    private static readonly Lock s_gate = new();
    private static FileOperation? s_pool;
    private static int s_pooled;

    private TransferBuffer[] _buffers = new TransferBuffer[16];
    private FileOperation? _next;
    private bool _pinned;

    private FileOperation()
    {
    }

    internal IFileOperationOwner? Owner { get; set; }

    /// <summary>The back end that performs it, set by the back end itself when it takes the operation.</summary>
    internal ThreadPoolBackend? WorkItemBackend { get; set; }

    /// <summary>What it waits for, while it does.</summary>
    internal DescriptorWait Wait { get; set; }

    /// <summary>
    /// A cancellation has come while it did not wait. Guarded by the poller's lock while a back end has the operation. One that comes too late may end the next use of
    /// this object: owners repeat what was canceled and is still wanted.
    /// </summary>
    internal bool IsCancelWanted { get; set; }

    internal FileOperationKind Kind { get; set; }

    /// <summary>The file offset, bytes; not used where the file cannot seek.</summary>
    internal long Offset { get; set; }

    /// <summary>For <see cref="FileOperationKind.Copy"/>: the file, and the offset there, that the bytes go to.</summary>
    internal FileBackend? Destination { get; set; }

    /// <inheritdoc cref="Destination"/>
    internal long DestinationOffset { get; set; }

    /// <summary>How many bytes are asked for: the sum of the buffers, or of the copy.</summary>
    internal long Length { get; set; }

    internal int BufferCount { get; private set; }

    /// <summary>What came of it: the bytes that moved; 0 for a read is the end of the file.</summary>
    internal long Transferred { get; private set; }

    /// <summary>What came of it: the error, if any.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>What came of it: ended by <see cref="FileBackend.TryCancel"/> before anything moved.</summary>
    internal bool IsCanceled { get; private set; }

    internal static FileOperation Rent(IFileOperationOwner owner)
    {
        FileOperation? operation;
        lock (s_gate)
        {
            operation = s_pool;
            if (operation is not null)
            {
                s_pool = operation._next;
                s_pooled--;
            }
        }

        operation ??= new FileOperation();
        operation._next = null;
        operation.Owner = owner;
        return operation;
    }

    /// <summary>Gives it back. Only its owner may, and only while no back end has it.</summary>
    internal void Return()
    {
        Debug.Assert(!_pinned);
        Clear();
        Owner = null;
        Error = null;
        WorkItemBackend = null;
        Wait = default;
        IsCancelWanted = false;
        if (_buffers.Length > MaxPooledBuffers)
        {
            return;
        }

        lock (s_gate)
        {
            if (s_pooled < MaxPooled)
            {
                _next = s_pool;
                s_pool = this;
                s_pooled++;
            }
        }
    }

    /// <summary>Forgets the memory of the last call.</summary>
    internal void Clear()
    {
        Array.Clear(_buffers, 0, BufferCount);
        BufferCount = 0;
        Length = 0;
        Destination = null;
    }

    internal ReadOnlySpan<TransferBuffer> Buffers => _buffers.AsSpan(0, BufferCount);

    internal ReadOnlyMemory<byte> FirstBuffer => _buffers[0].Memory;

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
    }

    /// <summary>Adds a part of a segment.</summary>
    internal void Add(FileSegment segment, int start, int length)
        => Add(segment.Buffer.Slice(start, length), segment.Address == 0 ? 0 : segment.Address + start);

    /// <summary>Gives every buffer an address until <see cref="Finish(long)"/> or one of its kind.</summary>
    internal unsafe void Pin()
    {
        if (_pinned)
        {
            return;
        }

        foreach (ref TransferBuffer buffer in _buffers.AsSpan(0, BufferCount))
        {
            if (buffer.Address == 0 && buffer.Memory.Length > 0)
            {
                _pinned = buffer.IsPinned = true;
                buffer.Handle = buffer.Memory.Pin();
                buffer.Address = (nint)buffer.Handle.Pointer;
            }
        }
    }

    /// <summary>Records success. Called by whoever performs it, once, when the system no longer uses the memory.</summary>
    internal void Finish(long transferred)
    {
        Unpin();
        Transferred = transferred;
        Error = null;
        IsCanceled = false;
    }

    /// <summary>Records failure, as <see cref="Finish(long)"/> does success.</summary>
    internal void Finish(Exception error)
    {
        Unpin();
        Transferred = 0;
        Error = error;
        IsCanceled = false;
    }

    /// <summary>Records that it was given up before anything moved.</summary>
    internal void FinishCanceled()
    {
        Unpin();
        Transferred = 0;
        Error = null;
        IsCanceled = true;
    }

    void IThreadPoolWorkItem.Execute() => WorkItemBackend!.Execute(this);

    private void Unpin()
    {
        if (!_pinned)
        {
            return;
        }

        _pinned = false;
        foreach (ref TransferBuffer buffer in _buffers.AsSpan(0, BufferCount))
        {
            if (buffer.IsPinned)
            {
                buffer.Handle.Dispose();
                buffer.Handle = default;
                buffer.Address = 0;
                buffer.IsPinned = false;
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

    /// <summary>Keeps it there while the operation runs, where nothing else does.</summary>
    internal MemoryHandle Handle;

    /// <summary>Whether <see cref="Handle"/> is to be disposed when the operation ends.</summary>
    internal bool IsPinned;
}
