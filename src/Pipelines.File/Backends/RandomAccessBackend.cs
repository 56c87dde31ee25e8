using System.Diagnostics.CodeAnalysis;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File.Backends;

/// <summary>
/// The portable back end: any handle on any system, through <see cref="RandomAccess"/>, one buffer a call; a handle that cannot seek, which the runtime refuses there,
/// through an unbuffered <see cref="FileStream"/>. A blocked read cannot be given up; its owner stops waiting for it instead.
/// </summary>
internal sealed class RandomAccessBackend : FileBackend, IThreadPoolWorkItem
{
    private readonly Action _onMoved;

    // Owned as the operation is: the one under way, and what it waits for. The runtime's source of it is pooled; an async method of ours would not be.
    private FileOperation? _operation;
    private ValueTaskAwaiter<int> _read;
    private ValueTaskAwaiter _write;

    // Never disposed: the handle is closed by itself, or left open.
    private FileStream? _sequential;

    internal RandomAccessBackend(SafeFileHandle handle, string? path, FileShape shape)
        : base(handle, path, shape)
    {
        _onMoved = OnMoved;
    }

    internal override FilePipeBackend Kind => FilePipeBackend.ThreadPool;

    internal override int MaxBuffersPerOperation => 1;

    internal override bool TryPerform(FileOperation operation) => false;

    internal override void Start(FileOperation operation)
    {
        FilePipeMetrics.HandedOver(operation.Kind);
        _operation = operation;

        // Never on the starter's stack: what follows is not the starter's to run.
        ThreadPool.UnsafeQueueUserWorkItem(this, preferLocal: false);
    }

    void IThreadPoolWorkItem.Execute() => PerformAndReport(_operation!);

    private void PerformAndReport(FileOperation operation)
    {
        do
        {
            if (!TryPerformNow(operation))
            {
                return;
            }
        }
        while (operation.Owner!.OnCompleted(operation));
    }

    private void OnMoved()
    {
        FileOperation operation = _operation!;
        Finish(operation);
        if (operation.Owner!.OnCompleted(operation))
        {
            PerformAndReport(operation);
        }
    }

    /// <summary><see langword="false"/>: <see cref="OnMoved"/> comes later, or has come.</summary>
    [SuppressMessage("Reliability", "CA2012:Use ValueTasks correctly", Justification = "Each is awaited once, by OnMoved or by Finish.")]
    private bool TryPerformNow(FileOperation operation)
    {
        try
        {
            switch (operation.Kind)
            {
                case FileOperationKind.Read:
                    Memory<byte> memory = MemoryMarshal.AsMemory(operation.FirstBuffer);
                    _read = (CanSeek ? RandomAccess.ReadAsync(Handle, memory, operation.Offset) : Sequential(FileAccess.Read).ReadAsync(memory)).GetAwaiter();
                    if (!_read.IsCompleted)
                    {
                        _read.UnsafeOnCompleted(_onMoved);
                        return false;
                    }

                    break;
                case FileOperationKind.Write:
                    _write = (CanSeek ? RandomAccess.WriteAsync(Handle, operation.FirstBuffer, operation.Offset) : Sequential(FileAccess.Write).WriteAsync(operation.FirstBuffer)).GetAwaiter();
                    if (!_write.IsCompleted)
                    {
                        _write.UnsafeOnCompleted(_onMoved);
                        return false;
                    }

                    break;
                case FileOperationKind.Sync when CanSeek:
                    RandomAccess.FlushToDisk(Handle);
                    break;
                case FileOperationKind.Sync:
                    // A pipe has nothing to flush, or would wait until the other side has read everything.
                    break;
                default:
                    throw new NotSupportedException();
            }
        }
        catch (Exception e) when (IsOfTheFile(e))
        {
            operation.Finish(FileErrors.WithPath(e, Path));
            return true;
        }

        Finish(operation);
        return true;
    }

    private void Finish(FileOperation operation)
    {
        try
        {
            switch (operation.Kind)
            {
                case FileOperationKind.Read:
                    operation.Finish(_read.GetResult());
                    break;
                case FileOperationKind.Write:
                    _write.GetResult();
                    operation.Finish(operation.FirstBuffer.Length);
                    break;
                default:
                    operation.Finish(0);
                    break;
            }
        }
        catch (Exception e) when (IsOfTheFile(e))
        {
            operation.Finish(FileErrors.WithPath(e, Path));
        }
    }

    private FileStream Sequential(FileAccess access) => _sequential ??= new FileStream(Handle, access, bufferSize: 0, Handle.IsAsync);

    private static bool IsOfTheFile(Exception e)
        => e is IOException or UnauthorizedAccessException or ObjectDisposedException or NotSupportedException or ArgumentException or OperationCanceledException;
}
