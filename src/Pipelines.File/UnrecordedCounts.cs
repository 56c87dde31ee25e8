using Pipelines.File.Backends;

namespace Pipelines.File;

/// <summary>
/// What finished operations have counted and no listener of the meter has been told: a listener is a caller's code, and operations end on threads of the library's own.
/// Whoever it belongs to guards it by its lock, and records it on a thread of a caller's, without the lock, before the caller sees the result.
/// </summary>
internal struct UnrecordedCounts
{
    private bool _any;
    private long _bytesRead;
    private long _writes;
    private long _bytesWritten;
    private long _syncs;
    private long _flushesCoalesced;
    private string? _fallbackCall;
    private int _fallbackError;

    internal readonly bool Any => _any;

    /// <summary>Counts a finished operation.</summary>
    internal void Add(FileOperation operation, int flushesCoalesced = 0)
    {
        _any = true;
        _flushesCoalesced += flushesCoalesced;
        switch (operation.Kind)
        {
            case FileOperationKind.Read:
                _bytesRead += operation.Transferred;
                break;
            case FileOperationKind.Write when operation.Transferred > 0:
                _writes++;
                _bytesWritten += operation.Transferred;
                break;
            case FileOperationKind.Sync when operation is { Error: null, IsCanceled: false }:
                _syncs++;
                break;
        }

        if (operation.TakeFallback(out int error) is { } call)
        {
            _fallbackCall = call;
            _fallbackError = error;
        }
    }

    /// <summary>Gives what there is, and begins anew.</summary>
    internal UnrecordedCounts Take()
    {
        UnrecordedCounts taken = this;
        this = default;
        return taken;
    }

    /// <summary>Tells the listeners.</summary>
    internal readonly void Record()
    {
        if (!_any)
        {
            return;
        }

        FilePipeMetrics.Read(_bytesRead);
        FilePipeMetrics.Wrote(_writes, _bytesWritten);
        FilePipeMetrics.Synced(_syncs);
        FilePipeMetrics.FlushesCoalesced(_flushesCoalesced);
        if (_fallbackCall is not null)
        {
            FilePipeMetrics.FellBack(_fallbackCall, _fallbackError);
        }
    }
}
