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
/// One read, write, sync or other step: what, where, with which memory, and its result. Whoever rented it owns it until it is given to
/// <see cref="OpenedFile.Run"/>, and again when it is told of the end; in between the file owns it. Reusable, and pooled.
/// </summary>
internal sealed class FileRequest : IWaitingCall, IThreadPoolWorkItem
{
    /// <summary>The maximum number of buffers of a pooled request; one with more is not pooled.</summary>
    internal const int MaxPooledBuffers = 256;

    private const int MaxPooled = 64;

    // The pool, so that a file allocates no request, with room for all, because Return must not fail. Guarded by itself.
    private static readonly Stack<FileRequest> s_free = new(MaxPooled);

    private TransferBuffer[] _buffers = new TransferBuffer[16];

    // While it runs: the file that performs it, and whom the end is told.
    private OpenedFile? _file;
    private IRequestOwner? _owner;

    internal FileRequestKind Kind { get; private set; }

    /// <summary>The file offset, bytes; not used if the file cannot seek.</summary>
    internal long Offset { get; private set; }

    /// <summary>The call of a <see cref="FileRequestKind.Step"/>.</summary>
    internal Action? Step { get; private set; }

    /// <summary>The number of bytes that are asked for: the sum of the buffers.</summary>
    internal long Length { get; private set; }

    internal int BufferCount { get; private set; }

    /// <summary>Whether a read is the first one at the length that the file had when it was opened.</summary>
    internal bool ExpectsEnd { get; set; }

    /// <summary>Result: the number of bytes transferred; 0 for a read is the end of the file.</summary>
    internal long Transferred { get; private set; }

    /// <summary>Result: the error, if any.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>Result: whether <see cref="OpenedFile.Cancel"/> ended it before any byte was transferred.</summary>
    internal bool IsCanceled { get; private set; }

    /// <summary>
    /// Whether the request is to end early. Set by <see cref="OpenedFile.Cancel"/> and read under the lock of a file that can end its waits
    /// itself, or of the poller. Only <see cref="OverlappedFile"/> uses it without a lock: it reads it before and after it begins the call.
    /// </summary>
    internal bool IsCancelWanted { get; set; }

    /// <summary>
    /// The file whose readiness the request waits for, with a reference that keeps it open; <see langword="null"/> while it does not wait.
    /// Guarded by the poller.
    /// </summary>
    internal SafeFileHandle? Polled { get; set; }

    /// <summary>
    /// Whether the owner is told of the end on a thread of the application, because it runs a caller's code. Set by whoever rents the
    /// request.
    /// </summary>
    internal bool ResumesOnPool { get; set; }

    /// <summary>The threads that perform it if it waits; of its kind, unless the owner chooses others after <see cref="Begin"/>.</summary>
    internal WaitingThreads Threads { get; set; } = WaitingThreads.Reads;

    /// <summary>The first buffer, by its pinned address, so that no code of a caller's MemoryManager runs.</summary>
    internal unsafe Span<byte> PinnedBytes => new((void*)_buffers[0].Address, _buffers[0].Memory.Length);

    /// <summary>Writes where the buffers are, for readv(2) and writev(2).</summary>
    internal unsafe void CopyTo(Libc.IoVector* vectors)
    {
        for (int i = 0; i < BufferCount; i++)
        {
            vectors[i].Base = _buffers[i].Address;
            vectors[i].Length = _buffers[i].Memory.Length;
        }
    }

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
        IsCancelWanted = false;
        ExpectsEnd = false;
        Kind = kind;
        Threads = kind switch
        {
            FileRequestKind.Read => WaitingThreads.Reads,
            FileRequestKind.Write => WaitingThreads.Writes,
            _ => WaitingThreads.Syncs,
        };
        Offset = offset;
        Length = 0;
        Step = null;
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

    /// <summary>Makes a read of one buffer ask for at most <paramref name="length"/> bytes.</summary>
    internal void Shorten(long length)
    {
        Debug.Assert(BufferCount == 1);
        Length = Math.Min(Length, length);
        _buffers[0].Memory = _buffers[0].Memory[..(int)Length];
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
        for (int i = 0; i < BufferCount; i++)
        {
            ref TransferBuffer buffer = ref _buffers[i];
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
        for (int i = 0; i < BufferCount; i++)
        {
            try
            {
                _buffers[i].Handle.Dispose();
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
        Debug.Assert(transferred >= 0 && transferred <= Length);
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

    /// <summary>Begins a run by the file, whose end is told to the owner.</summary>
    internal void BeginRun(OpenedFile file, IRequestOwner owner)
    {
        Debug.Assert(_file is null && _owner is null);
        (_file, _owner) = (file, owner);
    }

    /// <summary>Has a waiting thread perform the request.</summary>
    internal void Queue() => Threads.Queue(this);

    /// <summary>
    /// Ends the run, when the system does not use the memory any more and the result is recorded. The request belongs to its owner again,
    /// which is told so within this call, or on a thread of the application's with <see cref="ResumesOnPool"/>.
    /// </summary>
    internal void Complete()
    {
        if (ResumesOnPool)
        {
            _owner!.Resume(this);
        }
        else
        {
            End();
        }
    }

    /// <summary>
    /// Tells the owner: called once for each run, by <see cref="Complete"/> or by what <see cref="IRequestOwner.Resume"/> has chosen.
    /// </summary>
    internal void End()
    {
        // A request that is kept for its next use keeps no file.
        _file = null;
        IRequestOwner owner = _owner!;
        _owner = null;
        owner.OnEnded(this);
    }

    /// <summary>The file that the request waits for without a thread may be ready: called once for each such wait.</summary>
    internal void OnReady() => _file!.OnReady(this);

    void IWaitingCall.Perform() => _file!.Perform(this);

    void IThreadPoolWorkItem.Execute() => End();

    /// <summary>Returns the request to its pool. Called by its owner, while no file performs it.</summary>
    internal void Return()
    {
        Clear();
        Debug.Assert(Polled is null);
        Error = null;
        ResumesOnPool = false;
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
