using Pipelines.File.Buffering;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;
using Pipelines.File.Writing;

namespace Pipelines.File;

/// <content>Goes on in a file: one loop at a time, while there is something to write.</content>
public sealed partial class FileBufferingPipe
{
    /// <summary>The fewest bytes, and the most, that are worth a write.</summary>
    private const int MinSpill = 64 * 1024;
    private const int MaxSpill = 512 * 1024;

    /// <summary>Has everything that was flushed written to the file, because somebody wants to read it there.</summary>
    internal bool WantAllInFileLocked()
    {
        _wantsAllInFile = true;
        return TryBeginSpillLocked();
    }

    /// <summary>Whether the caller is to begin the loop, without the lock, by <see cref="Spill"/>.</summary>
    private bool TryBeginSpillLocked()
    {
        bool begins = !_isSpilling && !_isDisposed && (_isInFile && _file.Opened is null ? !_hasFileFailed : IsToSpillLocked());
        _isSpilling |= begins;
        return begins;
    }

    internal void Spill(bool isDue)
    {
        if (isDue)
        {
            // No AsyncLocal of the caller's reaches the loop.
            using AsyncFlowControl flow = ExecutionContext.IsFlowSuppressed() ? default : ExecutionContext.SuppressFlow();
            _ = SpillAsync();
        }
    }

    private bool IsToSpillLocked()
    {
        long waiting = _flushed - Math.Max(_written, StartLocked);
        return _isInFile && !_hasFileFailed && waiting >= (_wantsAllInFile ? 1 : MinSpill);
    }

    private async Task SpillAsync()
    {
        FileRequest? request = null;
        Exception? error = null;
        try
        {
            if (_file.Opened is null)
            {
                NamelessFile file = await WaitingCall<NamelessFile>.RunAsync(WaitKind.Open,
                    () => NamelessFile.Make(_options.FullFolder, _calls)).ConfigureAwait(false);
                SharedFile shared = new(file.Opened, _options.FullFolder);
                lock (_gate)
                {
                    (_file, _shared) = (file, shared);
                }

                Wake();
            }

            OpenedFile opened = _file.Opened!;
            ulong volume = LocalFileSystems.TakeWrites(opened.Properties) ? opened.Properties.Identity.Volume : 0;
            request = opened.Rent();
            while (TryTake(request, out Hold taken))
            {
                try
                {
                    request.Pin();

                    // As the writer of a file does: a short write, where the file system takes them at once, is made on this thread.
                    long begun = FastWrites.Shared.Begin(volume);
                    if (!(request.Length <= FastWrites.MaxBytes && FastWrites.Shared.AreExpected(volume)
                        && opened.Try(request, mayWait: true)))
                    {
                        SharedFile.PendingRequest pending = new();
                        opened.Run(request, pending);
                        await pending.Task.ConfigureAwait(false);
                    }

                    FastWrites.Shared.End(volume, begun, request.Transferred);
                }
                catch
                {
                    // What a caller's memory pool throws.
                    request.FinishCanceled();
                    throw;
                }
                finally
                {
                    request.Clear();
                    EndWrite(request, taken);
                }
            }
        }
        catch (Exception e)
        {
            error = e;
        }

        if (request is not null)
        {
            _file.Opened!.Return(request);
        }

        EndSpill(error);
    }

    /// <summary>Takes the next bytes to write; otherwise the loop ends.</summary>
    private bool TryTake(FileRequest request, out Hold taken)
    {
        taken = default;
        lock (_gate)
        {
            if (_isDisposed || !IsToSpillLocked())
            {
                return false;
            }

            long from = Math.Max(_written, StartLocked);
            taken = HoldLocked(from, Math.Min(_flushed, from + MaxSpill));
            request.Begin(FileRequestKind.Write, from);
            FileSegment segment = taken.First!;
            SequencePosition end = taken.Bytes.End;
            int start = taken.Bytes.Start.GetInteger();
            for (int count = 0; count < _file.Opened!.MaxBuffersPerOperation; count++)
            {
                int length = (segment == taken.Last ? end.GetInteger() : segment.End) - start;
                if (length > 0)
                {
                    request.Add(segment, start, length);
                }

                if (segment == taken.Last)
                {
                    break;
                }

                (segment, start) = (segment.NextSegment!, 0);
            }

            return true;
        }
    }

    private void EndWrite(FileRequest request, in Hold taken)
    {
        FileSegment? freed;
        lock (_gate)
        {
            _written = Math.Max(_written, request.Offset + request.Transferred);
            freed = DropBelowLocked(_written);
            EndUseLocked(taken, ref freed);
            if (request.Error is { } error)
            {
                FailFileLocked(error);
            }
        }

        _ = SegmentPool.Shared.Return(freed);
        Wake();
    }

    private void FailFileLocked(Exception error)
    {
        _hasFileFailed = true;
        _error ??= ExceptionDispatchInfo.Capture(error);
    }

    private void EndSpill(Exception? error)
    {
        bool isReleased;
        bool isAgain;
        lock (_gate)
        {
            if (error is not null)
            {
                FailFileLocked(error);
            }

            _isSpilling = false;
            isReleased = _isDisposed;
            isAgain = TryBeginSpillLocked();
        }

        if (isReleased)
        {
            Release();
        }

        Spill(isAgain);
        Wake();
    }

    /// <summary>Waits until nothing is written to the file; throws what failed.</summary>
    private async ValueTask WaitForSpillAsync(bool throws)
    {
        while (true)
        {
            PendingResult<bool> wait;
            lock (_gate)
            {
                ThrowIfDisposedLocked();
                if (!_isSpilling)
                {
                    if (throws)
                    {
                        _error?.Throw();
                    }

                    return;
                }

                wait = WaitLocked(default);
            }

            await EndWaitAsync(wait, default).ConfigureAwait(false);
        }
    }
}
