using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Diagnostics;

namespace Pipelines.File.IO;

/// <summary>
/// Any handle on any system, through <see cref="RandomAccess"/>, one buffer a call; a handle that cannot seek, which the runtime refuses there,
/// through an unbuffered <see cref="FileStream"/>. What has to wait is made on a waiting thread, or on the runtime's.
/// </summary>
internal sealed class PortableFile : OpenedFile
{
    // The sectors of common devices, bytes. One whose length is no multiple of the larger one has the smaller.
    private const int LargeSector = 4096;
    private const int SmallSector = 512;

    // Never disposed: the handle is closed by itself, or left open.
    private FileStream? _sequential;

    // Where it cannot seek.
    private readonly SequentialReader? _reader;

    // Everywhere else the runtime's asynchronous calls are blocking ones on a thread of the application's pool; here they are made on a waiting thread at once.
    private readonly bool _isOverlapped;

    internal PortableFile(SafeFileHandle handle, string? path, FileProperties properties)
        : base(handle, path, properties)
    {
        _isOverlapped = OperatingSystem.IsWindows() && handle.IsAsync;
        _reader = properties.CanSeek ? null : new SequentialReader(this);
    }

    internal override FilePipeBackend Kind => FilePipeBackend.Portable;

    internal override int MaxBuffersPerOperation => 1;

    // A write that somebody has to make room for cannot be given up.
    internal override bool EndsWrites => CanSeek;

    // A disk or volume of Windows is read in whole sectors.
    internal override int ReadGranularity
        => !OperatingSystem.IsWindows() || !CanSeek || Properties.IsRegular ? 1 : Properties.Length % LargeSector == 0 ? LargeSector : SmallSector;

    internal override FileRequest Rent() => PortableRequest.Rent(this);

    internal override bool TryPerform(FileRequest operation, bool mayWait)
    {
        if (!mayWait || !CanSeek || operation.Kind != FileRequestKind.Write)
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

    internal override void Start(FileRequest operation)
    {
        FilePipeMetrics.HandedOver(operation.Kind);

        // Never on the starter's stack: what follows is not the starter's to run.
        ((PortableRequest)operation).Queue();
    }

    internal override void Cancel(FileRequest operation, int generation)
    {
        // RandomAccess gives nothing up.
        _reader?.Cancel((PortableRequest)operation, generation);
    }

    /// <summary>Performs the operation on a waiting thread, which completes it if it has ended at once.</summary>
    internal void Perform(PortableRequest operation)
    {
        if (operation.Kind == FileRequestKind.Step)
        {
            operation.PerformStep();
            operation.Complete();
        }
        else if (operation.Kind == FileRequestKind.Read && _reader is { } reader)
        {
            reader.Perform(operation);
        }
        else if (TryBegin(operation))
        {
            OnFinished(operation);
        }
    }

    /// <summary>The runtime has finished what <see cref="TryBegin"/> began, on a thread of its pool.</summary>
    internal void OnFinished(PortableRequest operation)
    {
        End(operation);
        operation.Complete();
    }

    /// <summary>Makes the call. <see langword="false"/>: <see cref="OnFinished"/> comes later, or has come.</summary>
    private bool TryBegin(PortableRequest operation)
    {
        try
        {
            switch (operation.Kind)
            {
                case FileRequestKind.Read:
                    return operation.TryFinishNow(
                        _isOverlapped ? RandomAccess.ReadAsync(Handle, MemoryMarshal.AsMemory(operation.FirstBuffer), operation.Offset)
                        : new ValueTask<int>(RandomAccess.Read(Handle, PinnedOf(operation), operation.Offset)));
                case FileRequestKind.Write:
                    if (CanSeek && !_isOverlapped)
                    {
                        RandomAccess.Write(Handle, PinnedOf(operation), operation.Offset);
                        return operation.TryFinishNow(default(ValueTask));
                    }

                    return operation.TryFinishNow(CanSeek ? RandomAccess.WriteAsync(Handle, operation.FirstBuffer, operation.Offset) : Sequential(FileAccess.Write).WriteAsync(operation.FirstBuffer));
                case FileRequestKind.Sync when CanSeek:
                    RandomAccess.FlushToDisk(Handle);
                    return true;
                case FileRequestKind.Sync:
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

    private void End(PortableRequest operation)
    {
        try
        {
            operation.IsShortAtEnd = CanSeek;
            operation.Finish(operation.TakeResult());
        }
        catch (Exception e) when (IsOfTheFile(e))
        {
            operation.Finish(FileErrors.WithPath(e, Path));
        }
    }

    /// <summary>The memory of the operation, which is pinned, without another call of the code that it is from.</summary>
    internal static unsafe Span<byte> PinnedOf(FileRequest operation)
    {
        ref readonly TransferBuffer buffer = ref operation.BufferAt(0);
        return new Span<byte>((void*)buffer.Address, buffer.Memory.Length);
    }

    /// <summary>The file as a stream, where it cannot seek.</summary>
    internal FileStream Sequential(FileAccess access) => _sequential ??= new FileStream(Handle, access, bufferSize: 0, Handle.IsAsync);

    /// <summary>Whether that is what a call of the runtime's fails with, and no mistake of this library's.</summary>
    internal static bool IsOfTheFile(Exception e)
        => e is IOException or UnauthorizedAccessException or ObjectDisposedException or NotSupportedException or ArgumentException or OperationCanceledException;
}
