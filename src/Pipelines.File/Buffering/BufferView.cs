using Pipelines.File.IO;

namespace Pipelines.File.Buffering;

/// <summary>
/// The bytes of a <see cref="FileBufferingPipe"/> as a file to read from, so that a <see cref="FilePipeReader"/> reads them: from memory,
/// from the pipe's file, or after a wait.
/// </summary>
/// <param name="pipe">The pipe.</param>
/// <param name="length">The number of bytes that are there already.</param>
internal sealed class BufferView(FileBufferingPipe pipe, long length)
    : OpenedFile(s_noHandle, pipe.Folder, FileProperties.OfBuffer(length))
{
    // One for all, because it has a finalizer.
    private static readonly SafeFileHandle s_noHandle = new();

    internal override FilePipeBackend Kind => OperatingSystem.IsLinux() ? FilePipeBackend.UnixThreads : FilePipeBackend.Portable;

    internal override FileIdentity Identity => default;

    internal override int MaxBuffersPerOperation => 1;

    internal override bool EndsAt(long offset) => pipe.EndsAt(offset);

    private protected override bool TryPerformCore(FileRequest request, bool mayWait) => pipe.TryRead(request);

    internal override void Run(FileRequest request, IRequestOwner owner) => pipe.RunRead(request, this, owner);

    internal override void Cancel(FileRequest request) => pipe.CancelRead(request);

    internal override void Release(bool closeHandle) => pipe.RemoveReader(this);
}
