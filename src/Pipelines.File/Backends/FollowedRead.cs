using Pipelines.File.Waiting;

namespace Pipelines.File.Backends;

/// <summary>The owner of an operation on a followed file, between the back end and whoever rented the operation: it keeps the end of the file from the latter while more may come.</summary>
internal sealed class FollowedRead(FollowedFile file, IFileOperationOwner owner) : IFileOperationOwner
{
    /// <summary>Whom the operation is reported to.</summary>
    internal IFileOperationOwner Owner { get; } = owner;

    /// <summary>The use of the operation that was canceled. Guarded by the file's lock.</summary>
    internal int CanceledGeneration { get; set; } = -1;

    /// <summary>The read has found the end on its owner's thread, and is to be started. Owned as the operation is.</summary>
    internal bool IsAtEnd { get; set; }

    bool IFileOperationOwner.RunsCallersCode => Owner.RunsCallersCode;

    bool IFileOperationOwner.OnCompleted(FileOperation operation)
    {
        if (FollowingBackend.HasFoundEnd(operation))
        {
            switch (file.Wait(operation, this))
            {
                case FollowedEnd.Waiting:
                    return false;
                case FollowedEnd.Grown:
                    return true;
                case FollowedEnd.Canceled:
                    operation.FinishCanceled();
                    break;
            }
        }

        return Owner.OnCompleted(operation);
    }
}
