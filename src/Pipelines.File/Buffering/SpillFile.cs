using Pipelines.File.IO;

namespace Pipelines.File.Buffering;

/// <summary>The pipe's file as a writer sees it. The pipe is told of every write, if given; it alone closes the file.</summary>
internal sealed class SpillFile(OpenedFile file, FileBufferingPipe? pipe)
    : OpenedFile(file.Handle, file.GivenPath, file.Properties), IRequestOwner
{
    // Owned by the one request of the writer while it runs.
    private IRequestOwner? _owner;

    internal override FilePipeBackend Kind => file.Kind;

    internal override int MaxBuffersPerOperation => file.MaxBuffersPerOperation;

    private protected override bool TryPerformCore(FileRequest request, bool mayWait)
    {
        bool isOver = file.TryPerform(request, mayWait);
        if (isOver)
        {
            pipe?.OnWritten(request);
        }

        return isOver;
    }

    internal override void Run(FileRequest request, IRequestOwner owner)
    {
        _owner = owner;
        file.Run(request, this);
    }

    internal override void Cancel(FileRequest request) => file.Cancel(request);

    internal override void Release(bool closeHandle)
    {
    }

    void IRequestOwner.OnEnded(FileRequest request)
    {
        pipe?.OnWritten(request);
        _owner!.OnEnded(request);
    }

    void IRequestOwner.Resume(FileRequest request) => _owner!.Resume(request);
}
