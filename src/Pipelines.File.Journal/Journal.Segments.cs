using System.Diagnostics.CodeAnalysis;
using System.IO.Pipelines;

namespace Pipelines.File;

/// <content>Begins segments, makes them ahead, and removes old ones.</content>
public sealed partial class Journal
{
    // While the next segment begins, no record is taken.
    private bool _isRolling;
    private Task _rolling = Task.CompletedTask;

    // While zeros are written, records are taken as far as there are blocks.
    private bool _isAddingZeros;
    private Task _addingZeros = Task.CompletedTask;

    // Held while segments are removed, which threads of the pool do.
    private readonly Lock _removing = new();

    // Guarded by it: the journal is closed.
    private bool _isRemovingOver;

    private void BeginSegmentLocked()
    {
        _isRolling = true;
        _rolling = Task.Run(BeginSegmentAsync);
    }

    /// <summary>Makes the next segment, once the current one has some records: a short journal needs none.</summary>
    private void PrepareLocked()
    {
        if (_options.PreallocateSegments && _prepared is null && _active.End > _options.SegmentSize / 8)
        {
            _prepared = new PreparedSegment(_folder, _options.SegmentSize);
        }
    }

    /// <summary>Has zeros written where they run short. No caller waits for that unless there are none left.</summary>
    private void AddZerosLocked(long size)
    {
        if (!_isAddingZeros && _active.MissingZeros(size, _options.SegmentSize) is > 0 and long length)
        {
            SegmentWriter segment = _active;
            _isAddingZeros = true;
            _addingZeros = Task.Run(() => AddZerosAsync(segment, length));
        }
    }

    [SuppressMessage("Design", "CA1031:Do not catch general exception types",
        Justification = "The journal has failed and keeps the error.")]
    private async Task AddZerosAsync(SegmentWriter segment, long length)
    {
        try
        {
            segment.WriteZeros(length);
            lock (_gate)
            {
                segment.AddZerosLocked(length);
                _isAddingZeros = false;
                ReleaseLocked();
            }
        }
        catch (Exception e)
        {
            await FailWhenCommittedAsync(e).ConfigureAwait(false);
        }
    }

    /// <summary>
    /// Keeps an error that is not of the records that were taken: they are committed first, if they can be, so that readers get them
    /// before the error. None are taken meanwhile.
    /// </summary>
    private async Task FailWhenCommittedAsync(Exception error)
    {
        lock (_gate)
        {
            _isRolling = true;
        }

        while (Error is null && Volatile.Read(ref _committed) < NextSequence)
        {
            await Task.Delay(1).ConfigureAwait(false);
        }

        Fail(error);
    }

    /// <summary>
    /// Begins the next segment. The records of the old one are on the device before, so that a reader who sees the new one knows that the
    /// old one is whole.
    /// </summary>
    [SuppressMessage("Design", "CA1031:Do not catch general exception types",
        Justification = "The journal has failed and keeps the error.")]
    private async Task BeginSegmentAsync()
    {
        try
        {
            SegmentWriter old = _active;
            await _addingZeros.ConfigureAwait(false);
            await FlushAsync(old, FlushGuarantee.Durable).ConfigureAwait(false);
            SegmentHeader header = new(_id, _next, old.File.First, DateTimeOffset.UtcNow, _crc);
            PreparedSegment? prepared;
            lock (_gate)
            {
                prepared = _prepared;
                _prepared = null;
            }

            SegmentWriter next = await SegmentWriter.CreateAsync(_folder, header, prepared, _options.FlushGuarantee).ConfigureAwait(false);
            lock (_gate)
            {
                _active = next;
                _segments = [.. _segments, next.File];
                _began[header.First] = header.Created;
                _isRolling = false;
            }

            Release();
            await old.CompleteAsync().ConfigureAwait(false);
            Retain();
        }
        catch (Exception e)
        {
            await FailWhenCommittedAsync(e).ConfigureAwait(false);
        }
    }

    /// <summary>A writer is for one caller at a time: a reader may have it flushed, too.</summary>
    private ValueTask<FlushResult> FlushAsync(SegmentWriter segment, FlushGuarantee guarantee)
    {
        lock (_gate)
        {
            return segment.FlushAsync(guarantee);
        }
    }

    /// <summary>Completes when every append that waited was taken, or has failed, and no segment is begun.</summary>
    private async Task DrainAsync()
    {
        while (true)
        {
            Task working;
            lock (_gate)
            {
                working = Task.WhenAll(_rolling, _addingZeros);
                if (_queue.Count == 0 && working.IsCompleted)
                {
                    return;
                }
            }

            await working.ConfigureAwait(false);
            await Task.Delay(1).ConfigureAwait(false);
        }
    }

    /// <summary>Removes the segments that the options do not want any more.</summary>
    private void Retain()
    {
        if (_options.RetainAge is { } age)
        {
            DateTimeOffset now = DateTimeOffset.UtcNow;
            DateTimeOffset oldest = age < now - DateTimeOffset.MinValue ? now - age : DateTimeOffset.MinValue;
            RemoveWhile((_, next) => BeganBefore(next.First, oldest), CancellationToken.None);
        }

        if (_options.RetainBytes is { } most)
        {
            lock (_removing)
            {
                long bytes = _segments.Sum(LengthOf);
                RemoveWhile(
                    (segment, _) =>
                    {
                        bool isMore = bytes > most;
                        bytes -= isMore ? LengthOf(segment) : 0;
                        return isMore;
                    },
                    CancellationToken.None);
            }
        }
    }

    // None, if it was removed and the journal does not know it: the sync of the folder has failed, or somebody else did it.
    private static long LengthOf(SegmentFile segment)
    {
        FileInfo file = new(segment.Path);
        return file.Exists ? file.Length : 0;
    }

    private bool BeganBefore(long first, DateTimeOffset time)
    {
        lock (_gate)
        {
            return _began[first] < time;
        }
    }

    /// <summary>Removes the oldest segments, as long as the condition holds of the oldest and the next one.</summary>
    private void RemoveWhile(Func<SegmentFile, SegmentFile, bool> isOld, CancellationToken cancellationToken)
    {
        lock (_removing)
        {
            ObjectDisposedException.ThrowIf(_isRemovingOver, this);
            while (_segments is [var oldest, var next, ..] && isOld(oldest, next))
            {
                cancellationToken.ThrowIfCancellationRequested();
                System.IO.File.Delete(oldest.Path);

                // One after the other on the device, too: a gap between two segments would be damage.
                FileSync.FlushFolder(_folder);
                lock (_gate)
                {
                    _segments = _segments[1..];
                    _began.Remove(oldest.First);
                }
            }
        }
    }
}
