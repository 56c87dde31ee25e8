using Pipelines.File.Diagnostics;

namespace Pipelines.File.IO;

/// <summary>
/// A file that can seek, on any system, through <see cref="RandomAccess"/>: blocking calls of one buffer, made on a waiting thread. Only a read of an overlapped handle (Windows) is the runtime's
/// asynchronous one, which allocates less.
/// </summary>
internal sealed class PortableFile(SafeFileHandle handle, string? path, FileProperties properties) : OpenedFile(handle, path, properties)
{
    // The sectors of common devices, bytes. One whose length is no multiple of the larger one has the smaller.
    private const int LargeSector = 4096;
    private const int SmallSector = 512;

    private readonly bool _isOverlapped = OperatingSystem.IsWindows() && handle.IsAsync;

    internal override FilePipeBackend Kind => FilePipeBackend.Portable;

    internal override int MaxBuffersPerOperation => 1;

    // A disk or volume of Windows is read in whole sectors.
    internal override int ReadGranularity
        => !OperatingSystem.IsWindows() || Properties.IsRegular ? 1 : Properties.Length % LargeSector == 0 ? LargeSector : SmallSector;

    internal override FileRequest Rent() => PortableRequest.Rent(this);

    internal override bool TryPerform(FileRequest operation, bool mayWait) => mayWait && TryFinish((PortableRequest)operation);

    internal override void Start(FileRequest operation)
    {
        FilePipeMetrics.HandedOver(operation.Kind);
        operation.Queue();
    }

    internal override void Cancel(FileRequest operation, int generation)
    {
        // RandomAccess gives nothing up.
    }

    /// <summary>On a waiting thread.</summary>
    internal void Perform(PortableRequest request)
    {
        if (TryFinish(request))
        {
            request.Complete();
        }
    }

    /// <summary>The runtime's read is over, on a thread of its pool.</summary>
    internal void OnRead(PortableRequest request)
    {
        Finish(request);
        request.Complete();
    }

    /// <summary><see langword="false"/>: the runtime has the read, and <see cref="OnRead"/> comes or has come.</summary>
    private bool TryFinish(PortableRequest request)
    {
        if (request.Kind == FileRequestKind.Step)
        {
            request.PerformStep();
            return true;
        }

        try
        {
            if (_isOverlapped && request.Kind == FileRequestKind.Read && !request.IsOver(RandomAccess.ReadAsync(Handle, MemoryMarshal.AsMemory(request.FirstBuffer), request.Offset)))
            {
                return false;
            }
        }
        catch (Exception e)
        {
            request.Finish(FileErrors.WithPath(e, Path));
            return true;
        }

        Finish(request);
        return true;
    }

    private void Finish(PortableRequest request)
    {
        try
        {
            request.IsShortAtEnd = true;
            request.Finish(Call(request));
        }
        catch (Exception e)
        {
            // Whatever it is, whoever waits gets it.
            request.Finish(FileErrors.WithPath(e, Path));
        }
    }

    private long Call(PortableRequest request)
    {
        switch (request.Kind)
        {
            case FileRequestKind.Read:
                return _isOverlapped ? request.TakeRead() : RandomAccess.Read(Handle, request.PinnedBytes, request.Offset);
            case FileRequestKind.Write:
                RandomAccess.Write(Handle, request.PinnedBytes, request.Offset);
                return request.Length;
            default:
                RandomAccess.FlushToDisk(Handle);
                return 0;
        }
    }
}
