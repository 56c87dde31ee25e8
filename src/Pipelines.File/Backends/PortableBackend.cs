using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File.Backends;

/// <summary>
/// Any handle on any system, through <see cref="RandomAccess"/>, one buffer a call; a handle that cannot seek, which the runtime refuses there,
/// through an unbuffered <see cref="FileStream"/>. A blocked read cannot be given up; its owner stops waiting for it instead.
/// </summary>
internal sealed class PortableBackend : FileBackend
{
    // The sectors of common devices, bytes. One whose length is no multiple of the larger one has the smaller.
    private const int LargeSector = 4096;
    private const int SmallSector = 512;

    // Never disposed: the handle is closed by itself, or left open.
    private FileStream? _sequential;

    // Everywhere else the runtime's asynchronous calls are blocking ones on a thread of the application's pool; here they are made on a waiting thread at once.
    private readonly bool _isOverlapped;

    internal PortableBackend(SafeFileHandle handle, string? path, FileProperties properties)
        : base(handle, path, properties) => _isOverlapped = OperatingSystem.IsWindows() && handle.IsAsync;

    internal override FilePipeBackend Kind => FilePipeBackend.Portable;

    internal override int MaxBuffersPerOperation => 1;

    internal override bool EndsOperations => CanSeek;

    // A disk or volume of Windows is read in whole sectors.
    internal override int ReadGranularity
        => !OperatingSystem.IsWindows() || !CanSeek || Properties.IsRegular ? 1 : Properties.Length % LargeSector == 0 ? LargeSector : SmallSector;

    internal override FileOperation Rent(IFileOperationOwner owner) => PortableOperation.Rent(this, owner);

    internal override bool TryPerform(FileOperation operation, bool mayWait)
    {
        if (!mayWait || !CanSeek || operation.Kind != FileOperationKind.Write)
        {
            return false;
        }

        // Also where the handle is overlapped: the runtime waits in place then, and needs no thread of the pool for it.
        try
        {
            RandomAccess.Write(Handle, PinnedOf(operation), operation.Offset);
            operation.Finish(operation.FirstBuffer.Length);
        }
        catch (Exception e) when (IsOfTheFile(e))
        {
            operation.Finish(FileErrors.WithPath(e, Path));
        }

        return true;
    }

    internal override void Start(FileOperation operation)
    {
        FilePipeMetrics.HandedOver(operation.Kind);

        // Never on the starter's stack: what follows is not the starter's to run.
        ((PortableOperation)operation).Queue();
    }

    internal override void Cancel(FileOperation operation, int generation)
    {
        // RandomAccess gives nothing up.
    }

    /// <summary>Begins the operation on a waiting thread. <see langword="true"/>: it has ended at once, and the owner has more.</summary>
    internal bool PerformAndReport(PortableOperation operation)
    {
        if (operation.Kind == FileOperationKind.Step)
        {
            operation.PerformStep();
        }
        else if (TryBegin(operation))
        {
            End(operation);
        }
        else
        {
            return false;
        }

        return operation.Report();
    }

    /// <summary>The runtime has finished what <see cref="TryBegin"/> began, on a thread of its pool.</summary>
    internal void OnFinished(PortableOperation operation)
    {
        End(operation);
        if (operation.Owner!.OnCompleted(operation))
        {
            operation.Queue();
        }
    }

    /// <summary>Makes the call. <see langword="false"/>: <see cref="OnFinished"/> comes later, or has come.</summary>
    private bool TryBegin(PortableOperation operation)
    {
        try
        {
            switch (operation.Kind)
            {
                case FileOperationKind.Read:
                    Memory<byte> memory = MemoryMarshal.AsMemory(operation.FirstBuffer);
                    return operation.TryFinishNow(
                        !CanSeek ? Sequential(FileAccess.Read).ReadAsync(memory)
                        : _isOverlapped ? RandomAccess.ReadAsync(Handle, memory, operation.Offset)
                        : new ValueTask<int>(RandomAccess.Read(Handle, PinnedOf(operation), operation.Offset)));
                case FileOperationKind.Write:
                    if (CanSeek && !_isOverlapped)
                    {
                        RandomAccess.Write(Handle, PinnedOf(operation), operation.Offset);
                        return operation.TryFinishNow(default(ValueTask));
                    }

                    return operation.TryFinishNow(CanSeek ? RandomAccess.WriteAsync(Handle, operation.FirstBuffer, operation.Offset) : Sequential(FileAccess.Write).WriteAsync(operation.FirstBuffer));
                case FileOperationKind.Sync when CanSeek:
                    RandomAccess.FlushToDisk(Handle);
                    return true;
                case FileOperationKind.Sync:
                    // A pipe has nothing to flush, or would wait until the other side has read everything.
                    return true;
                default:
                    throw new NotSupportedException();
            }
        }
        catch (Exception e) when (IsOfTheFile(e))
        {
            operation.BeginError = e;
            return true;
        }
    }

    private void End(PortableOperation operation)
    {
        try
        {
            long transferred = operation.TakeResult();
            if (transferred == 0 && operation.Kind == FileOperationKind.Read && !CanSeek && OperatingSystem.IsWindows() && WindowsCalls.Default.IsPipeThatGoesOn(Handle))
            {
                // Somebody has written nothing into the pipe, which the runtime gives as the end of it: the owner asks again.
                operation.FinishCanceled();
                return;
            }

            operation.Finish(transferred);
        }
        catch (Exception e) when (IsOfTheFile(e))
        {
            operation.Finish(FileErrors.WithPath(e, Path));
        }
    }

    /// <summary>The memory of the operation, which is pinned, without another call of the code that it is from.</summary>
    private static unsafe Span<byte> PinnedOf(FileOperation operation)
    {
        ref readonly TransferBuffer buffer = ref operation.Buffers[0];
        return new Span<byte>((void*)buffer.Address, buffer.Memory.Length);
    }

    private FileStream Sequential(FileAccess access) => _sequential ??= new FileStream(Handle, access, bufferSize: 0, Handle.IsAsync);

    private static bool IsOfTheFile(Exception e)
        => e is IOException or UnauthorizedAccessException or ObjectDisposedException or NotSupportedException or ArgumentException or OperationCanceledException;
}
