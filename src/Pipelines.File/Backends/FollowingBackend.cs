using System.Diagnostics.CodeAnalysis;
using Pipelines.File.Waiting;

namespace Pipelines.File.Backends;

/// <summary>
/// A file whose end is waited at: the back end of the file, with the wait before the end. A read that finds the end is one that has to wait, as that of an empty FIFO is; it ends
/// without bytes only when nothing more comes.
/// </summary>
internal sealed class FollowingBackend : FileBackend
{
    private readonly FileBackend _file;
    private readonly FollowedFile _followed;

    // Nothing of a read that was tried, and is to be started, is with the system: where the end was seen last, looking at the length saves a thread the read that finds nothing.
    private readonly bool _looksFirst;

    private FollowingBackend(FileBackend file, string? path, int interval)
        : base(file.Handle, file.GivenPath, file.Properties)
    {
        _file = file;
        _followed = new FollowedFile(file.Handle, path, file.Identity, interval);
        _looksFirst = file.Kind != FilePipeBackend.Overlapped;
        SharesPosition = file.SharesPosition;
        Appends = file.Appends;
    }

    // An owner that was forgotten, not released: the watch would stay for ever, and keep the file open.
    ~FollowingBackend() => _followed?.Release();

    internal override FilePipeBackend Kind => _file.Kind;

    internal override FileIdentity Identity => _followed.Identity;

    internal override int MaxBuffersPerOperation => _file.MaxBuffersPerOperation;

    internal override bool EndsOperations => _file.EndsOperations;

    internal override bool EndsWrites => _file.EndsWrites;

    internal override int ReadGranularity => _file.ReadGranularity;

    internal override int ReadAlignment => _file.ReadAlignment;

    internal override long EndOfLastWrite => _file.EndOfLastWrite;

    /// <summary>The file itself where it has no end to wait at: a FIFO, a device, a file that the system makes up.</summary>
    /// <param name="file">The file.</param>
    /// <param name="path">The whole path that it was opened by; <see langword="null"/> where its name does not count.</param>
    /// <param name="interval">How often to look where the system does not tell of changes.</param>
    internal static FileBackend Of(FileBackend file, string? path, TimeSpan interval)
        => file.Properties is { IsRegular: true, CanSeek: true, KnownLength: not null }
            ? new FollowingBackend(file, path, Math.Max(1, (int)interval.TotalMilliseconds))
            : file;

    /// <summary>Whether that is a read which has found the end of the file.</summary>
    internal static bool HasFoundEnd(FileOperation operation) => operation is { Kind: FileOperationKind.Read, Transferred: 0, Error: null, IsCanceled: false };

    internal override FileOperation Rent(IFileOperationOwner owner) => _file.Rent(new FollowedRead(_followed, owner));

    internal override bool TryPerform(FileOperation operation, bool mayWait)
    {
        if (!_file.TryPerform(operation, mayWait))
        {
            return false;
        }

        bool isAtEnd = HasFoundEnd(operation);
        ((FollowedRead)operation.Owner!).IsAtEnd = isAtEnd;
        return !isAtEnd;
    }

    internal override void Start(FileOperation operation)
    {
        FollowedRead read = (FollowedRead)operation.Owner!;
        if (!read.IsAtEnd && !(_looksFirst && operation.Kind == FileOperationKind.Read && _followed.IsLikelyAtEnd(operation.Offset)))
        {
            _file.Start(operation);
            return;
        }

        read.IsAtEnd = false;
        FilePipeMetrics.HandedOver(operation.Kind);
        switch (_followed.Wait(operation, read))
        {
            case FollowedEnd.Grown:
                operation.Queue();
                break;
            case FollowedEnd.Over:
                operation.Finish(0);
                Report(operation, read);
                break;
            case FollowedEnd.Canceled:
                operation.FinishCanceled();
                Report(operation, read);
                break;
        }
    }

    internal override void Cancel(FileOperation operation, int generation)
    {
        if (operation.Owner is FollowedRead read && _followed.TryCancel(operation, read, generation))
        {
            operation.FinishCanceled();
            Report(operation, read);
            return;
        }

        _file.Cancel(operation, generation);
    }

    internal override bool CanCopyTo(FileBackend destination) => _file.CanCopyTo(destination);

    internal override void SyncFolder() => _file.SyncFolder();

    [SuppressMessage("Usage", "CA1816:Dispose methods should call SuppressFinalize", Justification = "This is what disposes.")]
    internal override void Release(bool closeHandle)
    {
        GC.SuppressFinalize(this);
        _followed.Release();
        _file.Release(closeHandle);
    }

    /// <summary>Tells the owner, on a thread of a caller's.</summary>
    private void Report(FileOperation operation, FollowedRead read)
    {
        if (read.Owner.OnCompleted(operation))
        {
            Start(operation);
        }
    }
}
