using Pipelines.File.Diagnostics;

namespace Pipelines.File.IO;

/// <summary>
/// Takes out of the page cache what one reader or writer brings into it (<see cref="FileCaching.DropBehind"/>). It belongs to whoever
/// performs the one read or write under way. Where one of its calls fails, pages stay.
/// </summary>
/// <remarks>
/// A kernel that knows RWF_DONTCACHE could do all of it, but drops a folio of up to 2 MiB as soon as the first read that touches it is
/// over, and reads it again for the next: a third more from the device with 256 KiB a read, and half the rate. So the flag is for what only
/// it can do, and for large writes, which have no such cost.
/// </remarks>
internal sealed class PagesBehind(UnixCalls calls, SafeFileHandle file, long length, bool isWriter)
{
    /// <summary>Bytes of one step. A folio, which lies at a multiple of its size, is never in two.</summary>
    internal const long Step = 8 * 1024 * 1024;

    /// <summary>
    /// The least write that is worth the flag, bytes: the kernel gives every one to the device by itself, and reads a page that it has
    /// dropped again to write the rest of it.
    /// </summary>
    internal const int LeastUncachedWrite = 64 * 1024;

    // Steps that are looked at before the position comes there: more than the kernel reads ahead, whose pages would be taken for somebody
    // else's.
    private const int Window = 8;

    // Steps from the position on in which there may be pages that were read ahead and not used: twice the 8 MiB that a device is set to at
    // most, as a rule.
    private const int ReadAheadSteps = 3;

    // What each step of the window has of somebody else's, at its number modulo the window.
    private readonly Pages[] _pages = new Pages[Window];

    // The step of the position, and the first one that was not looked at; before the first call no step is near.
    private long _first = long.MinValue;
    private long _next;

    private bool _canLook = true;
    private bool _knowsFlag = true;

    // A writer: the step that was given to the device last; -1: none.
    private long _writing = -1;

    /// <summary>
    /// A read at that offset, or a write of so many bytes, is about to be made. <see langword="true"/>: with RWF_DONTCACHE.
    /// </summary>
    internal bool Enter(long offset, long count)
    {
        if (isWriter && _knowsFlag && count >= LeastUncachedWrite)
        {
            return true;
        }

        MoveTo(offset / Step);
        return !isWriter && _knowsFlag && (Array.IndexOf(_pages, Pages.Some) >= 0 || !_canLook || offset > length);
    }

    /// <summary>The kernel or the file system does not know RWF_DONTCACHE.</summary>
    internal void GiveUpFlag(int errno)
    {
        _knowsFlag = false;
        FilePipeMetrics.FellBack("RWF_DONTCACHE", errno);
    }

    /// <summary>
    /// The file is closed, or left: drops what is left of it, and what was read ahead. What a writer has not synced only begins to be
    /// written.
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

    /// <summary>The position has left the first step.</summary>
    private void LeaveFirst()
    {
        long step = PagesOf(_first) == Pages.None ? _first : -1;
        if (!isWriter)
        {
            Drop(step);
            return;
        }

        // Only a page that is on the device can be dropped, and this one is when the next has been filled, or nearly.
        if (_writing >= 0)
        {
            calls.WriteCached(file, _writing * Step, Step, waits: true);
            Drop(_writing);
        }

        _writing = step;
        if (step >= 0)
        {
            calls.WriteCached(file, step * Step, Step, waits: false);
        }
    }

    private void Drop(long step)
    {
        // Where nobody tells what was there before, that is for the kernel, by the flag.
        if (step >= 0 && (isWriter || _canLook || !_knowsFlag))
        {
            long offset = step * Step;
            calls.DropCached(file, offset, isWriter ? Step : Math.Min(Step, length - offset));
        }
    }

    /// <summary>Asks what is cached of the step that begins there.</summary>
    private Pages Look(long offset)
    {
        if (offset >= length)
        {
            // What a file that is read gets behind its length, whoever writes it brings into the cache, perhaps after the look.
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
