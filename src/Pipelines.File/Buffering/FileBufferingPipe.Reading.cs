using Pipelines.File.Buffering;
using Pipelines.File.IO;
using Pipelines.File.Memory;

namespace Pipelines.File;

/// <content>The reads of its readers and streams: from memory, from the file, or after a wait.</content>
public sealed partial class FileBufferingPipe
{
    // The reads that wait for the writer. Whoever changes something takes them all, and each looks again. Guarded by the lock.
    private readonly List<(FileRequest Request, BufferView View, IRequestOwner Owner)> _waiting = [];

    private enum Source
    {
        /// <summary>The read is over.</summary>
        None,

        File,

        /// <summary>Its first byte is not there yet.</summary>
        Writer,
    }

    /// <summary>Performs a read that has not to wait. Returns whether it is over.</summary>
    internal bool TryRead(FileRequest request) => IsOver(request, Read(request, null));

    /// <summary>Performs a read that may have to wait. Its end is told to the owner.</summary>
    internal void RunRead(FileRequest request, BufferView view, IRequestOwner owner)
    {
        Source source = Read(request, (request, view, owner));
        if (source == Source.Writer)
        {
            // The writer may keep what it has flushed, to write it together with more.
            _spill?.FlushBehind();
        }
        else if (IsOver(request, source))
        {
            request.BeginRun(view, owner);
            request.Complete();
        }
        else
        {
            _file.Opened.Run(request, new FileRead(owner));
        }
    }

    internal void CancelRead(FileRequest request)
    {
        (FileRequest Request, BufferView View, IRequestOwner Owner) taken;
        lock (_gate)
        {
            request.IsCancelWanted = true;
            taken = _waiting.Find(wait => wait.Request == request);
            _ = _waiting.Remove(taken);
        }

        if (taken.Request is null)
        {
            _file.Opened?.Cancel(request);
            return;
        }

        request.FinishCanceled();
        request.BeginRun(taken.View, taken.Owner);
        request.Complete();
    }

    /// <summary>Whether the offset is the end of what will ever be written.</summary>
    internal bool EndsAt(long offset)
    {
        lock (_gate)
        {
            return _isWriterCompleted && _error is null && offset >= _flushed;
        }
    }

    internal void RemoveReader(BufferView view)
    {
        FileSegment? freed = null;
        lock (_gate)
        {
            if (_readers.RemoveAll(reader => reader.OpenedFile == view) > 0 && !_options.Keep)
            {
                _isReaderGone = true;
                freed = DropBelowLocked(_flushed);
            }
        }

        _ = SegmentPool.Shared.Return(freed);
    }

    /// <summary>Something has changed: whoever waits looks again. Called without the lock.</summary>
    private void Wake()
    {
        (FileRequest, BufferView, IRequestOwner)[] taken;
        lock (_gate)
        {
            taken = _waiting.Count == 0 ? [] : [.. _waiting];
            _waiting.Clear();
        }

        foreach ((FileRequest request, BufferView view, IRequestOwner owner) in taken)
        {
            RunRead(request, view, owner);
        }
    }

    private bool IsOver(FileRequest request, Source source)
    {
        bool isOver = source == Source.None || (source == Source.File && _file.Opened.TryPerform(request));
        if (isOver && source == Source.File)
        {
            FailIfTruncated(request);
        }

        return isOver;
    }

    /// <summary>Reads from memory, or says what the read needs. One that needs the writer waits, if it can.</summary>
    private Source Read(FileRequest request, (FileRequest, BufferView, IRequestOwner)? wait)
    {
        FileSegment? freed = null;
        lock (_gate)
        {
            long available = VisibleLocked - request.Offset;
            if (_isDisposed)
            {
                request.Finish(new ObjectDisposedException(nameof(FileBufferingPipe)));
            }
            else if (request.IsCancelWanted)
            {
                request.FinishCanceled();
            }
            else if (request.Length == 0)
            {
                request.Finish(0);
            }
            else if (available > 0 && request.Offset < _memoryEnd)
            {
                CopyLocked(request, out freed);
            }
            else if (available > 0)
            {
                request.Shorten(available);
                return Source.File;
            }
            else if (VisibleLocked == _flushed && _error is { } error)
            {
                request.Finish(error);
            }
            else if (VisibleLocked == _flushed && _isWriterCompleted)
            {
                request.Finish(0);
            }
            else
            {
                if (wait is { } waits)
                {
                    _waiting.Add(waits);
                }

                return Source.Writer;
            }
        }

        _ = SegmentPool.Shared.Return(freed);
        return Source.None;
    }

    private void CopyLocked(FileRequest request, out FileSegment? freed)
    {
        FileSegment segment = _head!;
        while (segment.RunningIndex + segment.End <= request.Offset)
        {
            segment = segment.NextSegment!;
        }

        int start = (int)(request.Offset - segment.RunningIndex);
        Span<byte> room = request.PinnedBytes;
        int copied = 0;
        long available = Math.Min(VisibleLocked, _memoryEnd) - request.Offset;
        while (copied < Math.Min(room.Length, available))
        {
            int length = (int)Math.Min(Math.Min(segment.End - start, room.Length - copied), available - copied);
            segment.PinnedSpan.Slice(start, length).CopyTo(room[copied..]);
            copied += length;
            (segment, start) = (segment.NextSegment!, 0);
        }

        request.Finish(copied);
        freed = _options.Keep ? null : DropBelowLocked(request.Offset + copied);
    }

    /// <summary>Takes the memory of bytes out that nobody reads any more. The last segment stays, which the writer may fill.</summary>
    private FileSegment? DropBelowLocked(long end)
    {
        _start = end;
        FileSegment? freed = null;
        while (_head is { } head && head != _tail && head.RunningIndex + head.End <= end)
        {
            _head = head.NextSegment;
            (head.NextSegment, freed) = (freed, head);
        }

        return freed;
    }

    /// <summary>The file may have a name (<see cref="SaveAsync"/>), and somebody may truncate it then.</summary>
    private static void FailIfTruncated(FileRequest request)
    {
        if (request is { Transferred: 0, Error: null, IsCanceled: false })
        {
            request.Finish(new EndOfStreamException("The file of the pipe was saved, and somebody has truncated it since."));
        }
    }

    /// <summary>Whom the end of a read is told that a thread performs.</summary>
    private sealed class FileRead(IRequestOwner owner) : IRequestOwner
    {
        public void OnEnded(FileRequest request)
        {
            FailIfTruncated(request);
            owner.OnEnded(request);
        }
    }
}
