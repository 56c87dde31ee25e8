using Pipelines.File.Buffers;

namespace Pipelines.File;

/// <summary>
/// What the drain of one writer does next, in the order that a power failure asks for: the bytes, the length, a sync that covers both, the folder of a new file, the name. One step is
/// under way at a time. The writer's lock guards all of it.
/// </summary>
/// <param name="isFileNew">Opening has made the file, so it is not on the device before its folder is: that is synced once, behind the first sync.</param>
/// <param name="isFileChanged">The file was made or emptied: it is no more on the device than its first byte, and needs a sync with nothing written, too.</param>
internal sealed class DrainSteps(bool isFileNew, bool isFileChanged)
{
    private bool _isFolderUnsynced = isFileNew;
    private bool _syncsFolder;
    private bool _trims;
    private bool _takesName;
    private bool _syncsInTheEnd;
    private DrainStep _current;

    // How much the sync that is under way covers.
    private long _syncing;

    // What was written when the last write began.
    private long _writtenBefore;

    /// <summary>How much of what is written is on the device, bytes; -1 where a sync is due with nothing written.</summary>
    internal long Synced { get; private set; } = isFileChanged ? -1 : 0;

    internal bool IsTrimmed { get; private set; }

    /// <summary>Whether the file is getting its name, or has got it: it is too late to give up.</summary>
    internal bool IsTakingName { get; private set; }

    /// <summary>Whether the writer is completed and steps follow the last write, which one thread performs along with it.</summary>
    internal bool EndsWithSteps => _trims || _syncsInTheEnd || _takesName;

    /// <summary>The writer is completed: what comes behind the last write.</summary>
    internal void Complete(bool trims, bool syncs, bool takesName)
    {
        _trims = trims;
        _syncsInTheEnd = syncs;
        _takesName = takesName;
    }

    /// <summary>The next step, which is under way from here on.</summary>
    internal DrainStep Begin(WriteQueue queue, PendingFlushes flushes) => _current = Next(queue, flushes);

    /// <summary>The step has done what it was to do.</summary>
    internal void End()
    {
        switch (_current)
        {
            case DrainStep.Sync:
                _syncsFolder = _isFolderUnsynced;
                Synced = _isFolderUnsynced ? Synced : _syncing;
                break;
            case DrainStep.SyncFolder:
                _syncsFolder = _isFolderUnsynced = false;
                Synced = _syncing;
                break;
            case DrainStep.Trim:
                _trims = false;
                IsTrimmed = true;
                Synced = -1;
                break;
            case DrainStep.TakeName:
                _takesName = false;
                break;
        }
    }

    private DrainStep Next(WriteQueue queue, PendingFlushes flushes)
    {
        // A flush that waits for the device lets one more write go first, which other flushes may share its sync by, and is not put off for as long as others write on.
        if (queue.Flushed > queue.Written && !flushes.WantsSync(_writtenBefore))
        {
            _writtenBefore = queue.Written;
            return DrainStep.Write;
        }

        if (_syncsFolder)
        {
            return DrainStep.SyncFolder;
        }

        if (_trims)
        {
            // Before the last sync, which is to cover the length.
            return DrainStep.Trim;
        }

        if (Synced < queue.Written && (_syncsInTheEnd || flushes.WantsSync(queue.Written)))
        {
            // Only what is written by now is covered: a flush that comes while this one runs needs the next.
            _syncing = queue.Written;
            return DrainStep.Sync;
        }

        IsTakingName |= _takesName;
        return _takesName ? DrainStep.TakeName : DrainStep.None;
    }
}
