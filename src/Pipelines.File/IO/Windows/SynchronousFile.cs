using System.Runtime.Versioning;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Diagnostics;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// Windows: a synchronous handle that cannot seek, as redirected standard input and output, consoles and devices are. A call blocks its thread for as long as the other side
/// likes, so each such file has a thread of its own, which exists while there is something to do and some seconds more; CancelSynchronousIo gives the call up.
/// </summary>
[SupportedOSPlatform("windows")]
internal sealed class SynchronousFile : OpenedFile
{
    /// <summary>How long the thread outlives its last call, milliseconds.</summary>
    private const int IdleMilliseconds = 5000;

    /// <summary>How often a call is given up anew that was not found, each time after twice as many milliseconds.</summary>
    private const int MostAttempts = 10;

    private const int StackBytes = 256 * 1024;

    private readonly WindowsCalls _calls;

    // Guards the fields below, and SynchronousRequest.CanceledGeneration. Held for moments only: never during a call that blocks.
    private readonly object _gate = new();

    // For the thread to perform; and what it performs, between the look at its cancellation and the end of its call.
    private SynchronousRequest? _next;
    private SynchronousRequest? _called;

    // The thread's handle, while it is in a call.
    private SafeFileHandle? _thread;
    private bool _hasThread;
    private bool _isReleased;

    internal SynchronousFile(SafeFileHandle handle, string? path, FileProperties properties, WindowsCalls? calls = null)
        : base(handle, path, properties) => _calls = calls ?? WindowsCalls.Default;

    internal override FilePipeBackend Kind => FilePipeBackend.Portable;

    internal override int MaxBuffersPerOperation => 1;

    // A driver need not let its call be given up.
    internal override bool EndsOperations => false;

    internal override FileRequest Rent() => new SynchronousRequest(this);

    internal override bool TryPerform(FileRequest operation, bool mayWait) => false;

    internal override void Start(FileRequest operation)
    {
        FilePipeMetrics.HandedOver(operation.Kind);
        operation.Queue();
    }

    internal override void Cancel(FileRequest operation, int generation)
    {
        lock (_gate)
        {
            if (operation.Generation != generation)
            {
                return;
            }

            ((SynchronousRequest)operation).CanceledGeneration = generation;
        }

        GiveUp((SynchronousRequest)operation, generation, attempt: 0);
    }

    internal override void Release(bool closeHandle)
    {
        lock (_gate)
        {
            _isReleased = true;
            Monitor.Pulse(_gate);
        }

        base.Release(closeHandle);
    }

    /// <summary>Has the thread perform it. One operation of a file is under way at a time.</summary>
    internal void Hand(SynchronousRequest operation)
    {
        lock (_gate)
        {
            _next = operation;
            if (_hasThread)
            {
                Monitor.Pulse(_gate);
                return;
            }

            _hasThread = true;
        }

        Thread thread = new(static backend => ((SynchronousFile)backend!).Run(), StackBytes)
        {
            IsBackground = true,
            Name = WaitingThreads.ThreadName,
        };
        try
        {
            thread.UnsafeStart(this);
        }
        catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
        {
            // The system has no further thread: one of the application's, then.
            ThreadPool.UnsafeQueueUserWorkItem(static backend => backend.Run(), this, preferLocal: false);
        }
    }

    private void Run()
    {
        using SafeFileHandle thread = Kernel32.OpenThread(Kernel32.THREAD_TERMINATE, inherits: 0, Kernel32.GetCurrentThreadId());
        while (Take() is { } operation)
        {
            Perform(operation, thread);
            operation.Complete();
        }
    }

    /// <summary><see langword="null"/>: there was nothing to do for so long that the thread ends.</summary>
    private SynchronousRequest? Take()
    {
        lock (_gate)
        {
            if (_next is null && !_isReleased)
            {
                Monitor.Wait(_gate, IdleMilliseconds);
            }

            SynchronousRequest? operation = _next;
            _next = null;
            _hasThread = operation is not null;
            return operation;
        }
    }

    private void Perform(SynchronousRequest operation, SafeFileHandle thread)
    {
        switch (operation.Kind)
        {
            case FileRequestKind.Step:
                operation.PerformStep();
                return;
            case FileRequestKind.Sync:
                // A device has nothing to flush, and a pipe would wait until the other side has read everything.
                operation.Finish(0);
                return;
        }

        lock (_gate)
        {
            if (operation.CanceledGeneration == operation.Generation)
            {
                operation.FinishCanceled();
                return;
            }

            _called = operation;
            _thread = thread;
        }

        int error;
        uint transferred = 0;
        try
        {
            ref readonly TransferBuffer buffer = ref operation.BufferAt(0);
            error = operation.Kind == FileRequestKind.Read
                ? _calls.ReadBlocking(Handle, buffer.Address, (uint)buffer.Memory.Length, out transferred)
                : _calls.WriteBlocking(Handle, buffer.Address, (uint)buffer.Memory.Length, out transferred);
        }
        catch (ObjectDisposedException)
        {
            // The caller has closed the handle under us.
            error = Kernel32.ERROR_INVALID_HANDLE;
        }

        // From here on a cancellation that comes late finds no call of this thread, whatever that does next.
        lock (_gate)
        {
            _called = null;
            _thread = null;
        }

        _calls.Finish(operation, this, error, transferred);
    }

    /// <summary>
    /// Gives up the call that the thread is in. It may be on its way there, and is not found then: that is tried again, on a thread of the pool.
    /// </summary>
    private void GiveUp(SynchronousRequest operation, int generation, int attempt)
    {
        lock (_gate)
        {
            // Under the lock the thread stays within the call.
            if (_called != operation || operation.Generation != generation || _calls.TryCancelBlocking(_thread!) || attempt == MostAttempts)
            {
                return;
            }
        }

        _ = Task.Delay(1 << attempt).ContinueWith(_ => GiveUp(operation, generation, attempt + 1), CancellationToken.None, TaskContinuationOptions.None, TaskScheduler.Default);
    }
}
