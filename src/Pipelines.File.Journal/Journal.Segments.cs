using System.Diagnostics.CodeAnalysis;
using System.IO.Pipelines;

namespace Pipelines.File;

/// <content>Begins segments, and makes them ahead.</content>
public sealed partial class Journal
{
    // While the next segment begins, no record is taken.
    private bool _isRolling;

    // All that has to do with segments that were begun, the ends of the old ones included.
    private Task _rolling = Task.CompletedTask;

    // Nothing is written any more to segments before the one with this number.
    private long _sealedBefore;

    // While zeros are written, records are taken as far as there are blocks.
    private bool _isAddingZeros;
    private Task _addingZeros = Task.CompletedTask;

    private void BeginSegmentLocked()
    {
        _isRolling = true;
        Task before = _rolling;
        _rolling = Task.Run(() => BeginSegmentAsync(before));
    }

    /// <summary>Makes the next segment, once the current one has some records: a short journal needs none.</summary>
    private void PrepareLocked()
    {
        if (_isZeroed && _prepared is null && _active.End > _options.SegmentSize / 8)
        {
            _prepared = new PreparedSegment(_folder, _fileLock, _options.SegmentSize);
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

        while (Error is null && _committed.Next < NextSequence)
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
    private async Task BeginSegmentAsync(Task before)
    {
        SegmentWriter old = _active;
        try
        {
            await _addingZeros.ConfigureAwait(false);
            await FlushAsync(old, FlushGuarantee.Durable).ConfigureAwait(false);
            SegmentHeader header = SegmentHeader.After(old.Header, _next, _crc, old.Header.Epoch);
            PreparedSegment? prepared;
            lock (_gate)
            {
                prepared = _prepared;
                _prepared = null;
            }

            JournalFolder.ThrowIfNotInPlace(_fileLock);
            SegmentWriter next = await SegmentWriter.CreateAsync(
                _folder, _fileLock, header, prepared, _isZeroed, replaces: false, _options.FlushGuarantee).ConfigureAwait(false);
            uint crc = _crc;
            lock (_gate)
            {
                _active = next;
                _headers[header.First] = header;
                _segments = [.. _segments, next.File];
                _isRolling = false;
            }

            Release();

            // From here on the new segment cannot be lost without a word.
            old.WriteStatement(crc, header.First, isContinued: true);
            await old.FlushAsync(FlushGuarantee.Durable).ConfigureAwait(false);
            await old.CompleteAsync().ConfigureAwait(false);
            await before.ConfigureAwait(false);
            _sealedBefore = header.First;
            SignalSealed();
            JournalLog.SegmentBegun(_options.Log, Name, header.First, _segments.Length);
        }
        catch (Exception e)
        {
            await FailWhenCommittedAsync(e).ConfigureAwait(false);
            if (old != _active)
            {
                await old.AbortAsync().ConfigureAwait(false);
            }

            await before.ConfigureAwait(false);
            return;
        }

        // Not a part of what closing waits for: it waits for closing.
        _ = Task.Run(RetainAsync);
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
}
