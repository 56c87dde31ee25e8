using Pipelines.File.Diagnostics;

namespace Pipelines.File.IO;

/// <summary>
/// Drops the pages that one reader or writer brings into the page cache (<see cref="FileCaching.DropBehind"/>). Owned by whoever performs
/// the one running read or write. If the system does not know one of its calls, pages stay in the cache; a call that answers that bytes may
/// be lost fails the write.
/// </summary>
/// <remarks>
/// RWF_DONTCACHE alone could do this. But it drops a folio of up to 2 MiB when the first read that touches it is over, and the next read
/// reads it again: with 256 KiB a read a third more from the device, and half the rate. So the flag is used only where nothing else works,
/// and for large writes, which do not have this cost.
/// </remarks>
[UnsupportedOSPlatform("windows")]
internal sealed class PagesBehind(UnixCalls calls, SafeFileHandle file, long length, bool isWriter)
{
    /// <summary>The size of a step, bytes. A folio is aligned to its size, so it is never in two steps.</summary>
    internal const long Step = 8 * 1024 * 1024;

    /// <summary>
    /// The minimum size, bytes, of a write with the flag: the kernel starts writing each such write to the device by itself, and reads a
    /// dropped page again to write the rest of it.
    /// </summary>
    internal const int LeastUncachedWrite = 64 * 1024;

    // The number of steps, from the position on, that are examined in advance: more than the kernel reads ahead, because pages that it has
    // read ahead would count as somebody else's.
    private const int Window = 8;

    // The number of steps, from the position on, in which unused read-ahead pages can be: twice the usual maximum of a device, 8 MiB.
    private const int ReadAheadSteps = 3;

    // For each step of the window, at its number modulo the window: how much of it was in the cache before, and so is somebody else's.
    private readonly Pages[] _pages = new Pages[Window];

    // The step of the position, and the first step that was not examined. Before the first call no step is in the window.
    private long _first = long.MinValue;
    private long _next;

    private bool _canLook = true;
    private bool _knowsFlag = true;

    // The first answer of MoveTo's calls that means lost bytes, a negative errno; else 0.
    private long _lost;

    // A writer: the last step whose writing to the device was started; -1: none.
    private long _writing = -1;

    /// <summary>
    /// Called before a read at that offset, or a write of so many bytes. Returns 0, or the negative errno that says that bytes of earlier
    /// writes may be lost. <paramref name="isUncached"/>: the call is to be made with RWF_DONTCACHE.
    /// </summary>
    internal long Enter(long offset, long count, out bool isUncached)
    {
        isUncached = isWriter && _knowsFlag && count >= LeastUncachedWrite;
        if (isUncached)
        {
            return 0;
        }

        _lost = 0;
        MoveTo(offset / Step);
        isUncached = !isWriter && _knowsFlag && (Array.IndexOf(_pages, Pages.Some) >= 0 || !_canLook || offset > length);
        return _lost;
    }

    /// <summary>Called if the kernel or the file system does not support RWF_DONTCACHE.</summary>
    internal void GiveUpFlag(int errno)
    {
        _knowsFlag = false;
        FilePipeMetrics.FellBack("RWF_DONTCACHE", errno);
    }

    /// <summary>
    /// Called when the file is closed or not used any more: drops the remaining pages, and those that were read ahead. The pages that a
    /// writer has not synced are not dropped; their writing is only started.
    /// </summary>
    internal void Release()
    {
        Drop(_writing);
        for (long step = _first; step >= 0 && step < _first + (isWriter ? 1 : ReadAheadSteps); step++)
        {
            Drop(PagesOf(step) == Pages.None ? step : -1);
        }
    }

    private ref Pages PagesOf(long step) => ref _pages[step % Window];

    private void MoveTo(long step)
    {
        bool isNear = step >= _first && step < _first + Window;
        while (_first >= 0 && _first != step)
        {
            LeaveFirst();
            _first = isNear ? _first + 1 : step;
        }

        _next = isNear ? _next : step;
        for (_first = step; _next < step + Window; _next++)
        {
            PagesOf(_next) = Look(_next * Step);
        }
    }

    /// <summary>Drops the first step, or for a writer starts writing it: the position has left it.</summary>
    private void LeaveFirst()
    {
        long step = PagesOf(_first) == Pages.None ? _first : -1;
        if (!isWriter)
        {
            Drop(step);
            return;
        }

        // Only pages that are on the device can be dropped. Those of the last step are by now, or almost, because this step has been filled
        // meanwhile.
        if (_writing >= 0)
        {
            Write(_writing, waits: true);
            Drop(_writing);
        }

        _writing = step;
        if (step >= 0)
        {
            Write(step, waits: false);
        }
    }

    private void Write(long step, bool waits)
    {
        long answer;
        do
        {
            answer = calls.WriteCached(file, step * Step, Step, waits);
        }
        while (answer == -Libc.EINTR);

        if (answer < 0)
        {
            Probe.Rare("write-back answers an error");
        }

        _lost = _lost < 0 || new CallResult(answer).IsUnknownCall ? _lost : answer;
    }

    private void Drop(long step)
    {
        // If cachestat(2) does not work, RWF_DONTCACHE does this for reads, unless that is not supported either.
        if (step >= 0 && (isWriter || _canLook || !_knowsFlag))
        {
            long offset = step * Step;
            calls.DropCached(file, offset, isWriter ? Step : Math.Min(Step, length - offset));
        }
    }

    /// <summary>Examines how much of the step at that offset is cached.</summary>
    private Pages Look(long offset)
    {
        if (offset >= length)
        {
            // Reads: bytes behind the length are brought into the cache by whoever writes them, perhaps after this look.
            return isWriter ? Pages.None : Pages.All;
        }

        long cached = _canLook ? calls.CountCached(file, offset, Step) : 0;
        _canLook &= cached >= 0;
        return cached <= 0 ? Pages.None : cached < Math.Min(Step, length - offset) ? Pages.Some : Pages.All;
    }

    private enum Pages : byte
    {
        None,
        Some,
        All,
    }
}
