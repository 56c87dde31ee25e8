using Pipelines.File.Diagnostics;

namespace Pipelines.File.IO;

/// <summary>
/// Drops the pages that one reader or writer brings into the page cache (<see cref="FileCaching.DropBehind"/>). Owned by whoever performs
/// the one running read or write. What was in the cache when the file was opened is somebody else's and stays. If the system does not know
/// one of its calls, pages stay in the cache; a call that answers that bytes may be lost fails the write.
/// </summary>
/// <remarks>
/// RWF_DONTCACHE could do this. But it drops a folio of up to 2 MiB when the first read that touches it is over, and the next read reads it
/// again: with 256 KiB a read a third more from the device, and half the rate.
/// </remarks>
[UnsupportedOSPlatform("windows")]
internal sealed class PagesBehind
{
    /// <summary>The size of a step, bytes. A folio is aligned to its size, so it is never in two steps.</summary>
    internal const long Step = 8 * 1024 * 1024;

    /// <summary>The maximum number of parts of a file that opening examines; a part is one step or more.</summary>
    private const int MaxParts = 1024;

    // The number of steps, from the position on, in which unused read-ahead pages can be: twice the usual maximum of a device, 8 MiB.
    private const int ReadAheadSteps = 3;

    private readonly UnixCalls _calls;
    private readonly SafeFileHandle _file;
    private readonly bool _isWriter;

    // For each part of the file: whether nothing of it was cached when the file was opened, or the system does not tell.
    private readonly bool[] _drops;
    private readonly long _stepsPerPart;

    // The step of the last call, and for a writer the one before it, whose writing to the device was started; -1: none.
    private long _step = -1;
    private long _writing = -1;

    internal PagesBehind(UnixCalls calls, SafeFileHandle file, long length, bool isWriter)
    {
        (_calls, _file, _isWriter) = (calls, file, isWriter);
        _stepsPerPart = 1 + ((length - 1) / Step / MaxParts);
        long part = _stepsPerPart * Step;
        _drops = new bool[(length / part) + Math.Sign(length % part)];
        for (int i = 0; i < _drops.Length; i++)
        {
            _drops[i] = calls.CountCached(file, i * part, part) <= 0;
        }
    }

    /// <summary>
    /// Called before a read or write at that offset. Returns 0, or the negative errno that says that bytes of earlier writes may be lost.
    /// </summary>
    internal long Enter(long offset)
    {
        long left = _step;
        _step = offset / Step;
        if (left == _step || left < 0)
        {
            return 0;
        }

        if (!_isWriter)
        {
            Drop(left);
            return 0;
        }

        // Only pages that are on the device can be dropped. Those of the last step are by now, or almost, because this step has been filled
        // meanwhile.
        long lost = _writing < 0 ? 0 : Write(_writing, waits: true);
        Drop(_writing);
        _writing = left;
        long begun = Write(left, waits: false);
        return lost < 0 ? lost : begun;
    }

    /// <summary>
    /// Called when the file is closed or not used any more: drops the remaining pages, and those that were read ahead. The pages that a
    /// writer has not synced are not dropped; their writing is only started.
    /// </summary>
    internal void Release()
    {
        Drop(_writing);
        for (int i = 0; _step >= 0 && i < (_isWriter ? 1 : ReadAheadSteps); i++)
        {
            Drop(_step + i);
        }
    }

    private long Write(long step, bool waits)
    {
        long answer;
        do
        {
            answer = _calls.WriteCached(_file, step * Step, Step, waits);
        }
        while (answer == -Libc.EINTR);

        if (answer < 0)
        {
            Probe.Rare("write-back answers an error");
        }

        return new CallResult(answer).IsUnknownCall ? 0 : answer;
    }

    // Bytes behind the length are brought into the cache by whoever writes them.
    private void Drop(long step)
    {
        if (step >= 0 && (step / _stepsPerPart < _drops.Length ? _drops[step / _stepsPerPart] : _isWriter))
        {
            _calls.DropCached(_file, step * Step, Step);
        }
    }
}
