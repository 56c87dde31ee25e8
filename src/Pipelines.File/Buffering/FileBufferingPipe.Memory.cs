using Pipelines.File.Buffering;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File;

/// <content>The bytes in memory, and who uses them.</content>
public sealed partial class FileBufferingPipe
{
    private readonly TaskCompletionSource _released = new(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <summary>Bytes in memory that somebody uses.</summary>
    /// <param name="First">Their first segment; <see langword="null"/>: there are none.</param>
    /// <param name="Last">Their last one.</param>
    /// <param name="Bytes">They themselves.</param>
    internal readonly record struct Hold(FileSegment? First, FileSegment? Last, ReadOnlySequence<byte> Bytes);

    /// <summary>Uses flushed bytes that are in memory, until <see cref="Free(in Hold)"/>.</summary>
    internal Hold HoldLocked(long from, long to)
    {
        Debug.Assert(from >= StartLocked && to <= _flushed);
        if (from >= to)
        {
            return default;
        }

        FileSegment first = _head!;
        while (first.RunningIndex + first.End <= from)
        {
            first = first.NextSegment!;
        }

        FileSegment last = first;
        last.Uses++;
        while (last.RunningIndex + last.End < to)
        {
            last = last.NextSegment!;
            last.Uses++;
        }

        return new Hold(first, last,
            new ReadOnlySequence<byte>(first, (int)(from - first.RunningIndex), last, (int)(to - last.RunningIndex)));
    }

    /// <summary>Ends the use. Called without the lock.</summary>
    internal void Free(in Hold held)
    {
        FileSegment? freed = null;
        lock (_gate)
        {
            EndUseLocked(held, ref freed);
        }

        _ = SegmentPool.Shared.Return(freed);
    }

    /// <summary>Ends the use. <paramref name="freed"/> gets what nobody uses any more.</summary>
    private static void EndUseLocked(in Hold held, ref FileSegment? freed)
    {
        for (FileSegment? segment = held.First; segment is not null;)
        {
            FileSegment? next = segment == held.Last ? null : segment.NextSegment;
            EndUseLocked(segment, ref freed);
            segment = next;
        }
    }

    private static void EndUseLocked(FileSegment segment, ref FileSegment? freed)
    {
        if (--segment.Uses == 0)
        {
            (segment.NextSegment, freed) = (freed, segment);
        }
    }

    /// <summary>
    /// Takes segments out of the chain whose bytes nobody needs in memory: below <paramref name="end"/>. The last one stays.
    /// </summary>
    internal FileSegment? DropBelowLocked(long end)
    {
        FileSegment? freed = null;
        while (_head is { } head && head != _tail && head.RunningIndex + head.End <= end)
        {
            _head = head.NextSegment;
            EndUseLocked(head, ref freed);
        }

        return freed;
    }

    /// <summary>What a reader has consumed, if the pipe does not keep it.</summary>
    internal FileSegment? DropConsumedLocked(long consumed) => _options.Keep ? null : DropBelowLocked(Math.Min(consumed, _flushed));

    /// <summary>
    /// Frees everything, once: the pipe is disposed and nothing is written to the file. What a caller may still hold is left to the garbage
    /// collector; memory of a caller's pool goes back.
    /// </summary>
    private void Release()
    {
        FileSegment? freed = null;
        OpenedFile? file;
        lock (_gate)
        {
            bool isHeld = !HasCallersPool && !_isWriterCompleted;
            _tail?.Uses += isHeld ? 1 : 0;
            for (FileSegment? segment = _head; segment is not null;)
            {
                FileSegment? next = segment.NextSegment;
                EndUseLocked(segment, ref freed);
                segment = next;
            }

            (_head, _tail) = (null, null);
            file = _file.Opened;
        }

        _ = SegmentPool.Shared.Return(freed);
        if (file is null)
        {
            _released.SetResult();
            return;
        }

        // Closing a large file that has no name frees its blocks, which may take long.
        _ = WaitingCall<bool>.RunAsync(WaitKind.Open, () =>
        {
            file.Release(closeHandle: true);
            _released.SetResult();
            return true;
        });
    }
}
