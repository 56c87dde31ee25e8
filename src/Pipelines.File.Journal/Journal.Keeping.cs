using System.Diagnostics.CodeAnalysis;
using System.IO.Pipelines;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <content>Removes old segments, and copies all of them.</content>
public sealed partial class Journal
{
    private const int BackupBufferSize = 256 * 1024;

    // Who has it removes one segment, or registers a consumer.
    private readonly SemaphoreSlim _removing = new(1, 1);

    /// <summary>
    /// Removes the segments that have only records before <paramref name="sequence"/>. The segment that is written stays, and so does what
    /// a registered <see cref="JournalConsumer"/> has not processed yet. A reader that has not read them yet throws
    /// <see cref="JournalRecordsRemovedException"/> when it comes to them.
    /// </summary>
    /// <param name="sequence">The number of the first record to keep.</param>
    /// <param name="cancellationToken">Ends the call between two segments.</param>
    /// <exception cref="ObjectDisposedException">The journal is closed.</exception>
    /// <exception cref="IOException">A segment cannot be removed. The journal goes on.</exception>
    /// <exception cref="UnauthorizedAccessException">A segment cannot be removed. The journal goes on.</exception>
    public ValueTask TrimBeforeAsync(long sequence, CancellationToken cancellationToken = default)
        => TrimBeforeAsync(sequence, pastConsumers: false, cancellationToken);

    /// <summary>As above, and also removes what consumers have not processed, if that is asked for.</summary>
    /// <param name="sequence">The number of the first record to keep.</param>
    /// <param name="pastConsumers">
    /// Whether to remove records that registered consumers have not processed: these then get <see cref="JournalRecordsRemovedException"/>.
    /// </param>
    /// <param name="cancellationToken">Ends the call between two segments.</param>
    /// <inheritdoc cref="TrimBeforeAsync(long, CancellationToken)" path="/exception"/>
    public async ValueTask TrimBeforeAsync(long sequence, bool pastConsumers, CancellationToken cancellationToken = default)
    {
        ObjectDisposedException.ThrowIf(Volatile.Read(ref _closing) is not null, this);
        await _maintenance.WaitAsync(cancellationToken).ConfigureAwait(false);
        try
        {
            ObjectDisposedException.ThrowIf(Volatile.Read(ref _closing) is not null, this);
            await Task.Run(
                () => RemoveWhileAsync((_, next) => next.First <= sequence, pastConsumers, cancellationToken),
                cancellationToken).ConfigureAwait(false);
        }
        finally
        {
            _maintenance.Release();
        }
    }

    /// <summary>
    /// Copies the journal, as far as records are appended now, into another folder, while more are appended: what is copied can be opened.
    /// Nothing is trimmed meanwhile. Consumers are not copied.
    /// </summary>
    /// <param name="folder">The folder, which is made if it does not exist, and must have no journal.</param>
    /// <param name="cancellationToken">Ends it; what was copied stays.</param>
    /// <returns>The place up to which records were copied.</returns>
    /// <exception cref="IOException">The folder has a journal, or something cannot be read or written.</exception>
    /// <exception cref="ObjectDisposedException">The journal is closed.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public async ValueTask<JournalPosition> BackupAsync(string folder, CancellationToken cancellationToken = default)
    {
        ArgumentException.ThrowIfNullOrEmpty(folder);
        string path = Path.GetFullPath(folder);
        await _maintenance.WaitAsync(cancellationToken).ConfigureAwait(false);
        try
        {
            SegmentFile[] segments;
            long length;
            JournalPosition end;
            ValueTask<FlushResult> synced;
            lock (_gate)
            {
                if (ErrorLocked() is { } error)
                {
                    throw error;
                }

                segments = _segments;
                length = _active.End;
                end = new JournalPosition(Id, EpochBeforeLocked(_next), _next);
                synced = _active.FlushAsync(FlushGuarantee.Durable);
            }

            await synced.ConfigureAwait(false);
            await Task.Run(() => BackupTo(path, segments, length, cancellationToken), cancellationToken).ConfigureAwait(false);
            return end;
        }
        finally
        {
            _maintenance.Release();
        }
    }

    /// <summary>
    /// Opens a consumer, which sees new records at once, and of which <see cref="JournalConsumer.CommitAsync"/> puts them on the
    /// device first if <see cref="JournalOptions.FlushGuarantee"/> is a weaker one.
    /// </summary>
    /// <inheritdoc cref="JournalConsumer.OpenAsync"/>
    /// <exception cref="ObjectDisposedException">The journal is closed.</exception>
    public ValueTask<JournalConsumer> OpenConsumerAsync(
        string name, JournalConsumerOptions? options = null, CancellationToken cancellationToken = default)
    {
        ObjectDisposedException.ThrowIf(Volatile.Read(ref _closing) is not null, this);
        return JournalConsumer.OpenOfAsync(_folder, name, this, options, cancellationToken);
    }

    private static void BackupTo(string folder, SegmentFile[] segments, long length, CancellationToken cancellationToken)
    {
        JournalFolder.Make(folder);
        if (SegmentFile.In(folder).Length > 0)
        {
            throw new IOException($"The folder has a journal already: '{folder}'");
        }

        foreach (SegmentFile segment in segments)
        {
            cancellationToken.ThrowIfCancellationRequested();
            string copy = Path.Combine(folder, Path.GetFileName(segment.Path));
            if (segment != segments[^1])
            {
                System.IO.File.Copy(segment.Path, copy);
                SegmentFile.Sync(copy);
            }
            else
            {
                // No more of it: what is written meanwhile behind a place that was copied already would be a gap, which is damage.
                CopyBeginning(segment, copy, length, cancellationToken);
            }
        }

        FileSync.FlushFolder(folder);
    }

    private static void CopyBeginning(SegmentFile segment, string copy, long length, CancellationToken cancellationToken)
    {
        using SafeFileHandle source = SegmentFile.OpenToRead(segment.Path);
        using SafeFileHandle target = System.IO.File.OpenHandle(copy, FileMode.CreateNew, FileAccess.ReadWrite);
        byte[] buffer = new byte[BackupBufferSize];
        for (long position = 0; position < length;)
        {
            cancellationToken.ThrowIfCancellationRequested();
            int read = segment.Read(source, buffer.AsSpan(0, (int)Math.Min(buffer.Length, length - position)), position);
            if (read == 0)
            {
                throw new IOException($"The segment has become shorter while it was copied: '{segment.Path}'");
            }

            SegmentFile.Write(target, buffer.AsSpan(0, read), position, copy);
            position += read;
        }

        FileSync.Flush(target);
    }

    /// <summary>
    /// Removes the segments that the options do not want any more. What fails is kept, and tried again when the next segment begins: it
    /// concerns no record.
    /// </summary>
    [SuppressMessage("Design", "CA1031:Do not catch general exception types", Justification = "The error is kept, counted and logged.")]
    private async Task RetainAsync()
    {
        if (_options.RetainAge is null && _options.RetainBytes is null)
        {
            return;
        }

        await _maintenance.WaitAsync().ConfigureAwait(false);
        try
        {
            if (Volatile.Read(ref _closing) is null)
            {
                await RetainNowAsync().ConfigureAwait(false);
                RetentionError = null;
            }
        }
        catch (Exception e)
        {
            RetentionError = e;
            _meter.OnRetentionFailed();
            JournalLog.RetentionFailed(_options.Log, e, Name);
        }
        finally
        {
            _maintenance.Release();
        }
    }

    private async ValueTask RetainNowAsync()
    {
        if (_options.RetainAge is { } age)
        {
            DateTimeOffset now = DateTimeOffset.UtcNow;
            DateTimeOffset oldest = age < now - DateTimeOffset.MinValue ? now - age : DateTimeOffset.MinValue;
            await RemoveWhileAsync((_, next) => EndedBefore(next, oldest, now), _options.RetainsPastConsumers, CancellationToken.None)
                .ConfigureAwait(false);
        }

        if (_options.RetainBytes is { } most)
        {
            long bytes = _segments.Sum(LengthOf);
            await RemoveWhileAsync(
                (segment, _) =>
                {
                    bool isMore = bytes > most;
                    bytes -= isMore ? LengthOf(segment) : 0;
                    return isMore;
                },
                _options.RetainsPastConsumers,
                CancellationToken.None).ConfigureAwait(false);
        }
    }

    // None, if it was removed and the journal does not know it: the sync of the folder has failed, or somebody else did it.
    private static long LengthOf(SegmentFile segment)
    {
        FileInfo file = new(segment.Path);
        return file.Exists ? file.Length : 0;
    }

    /// <summary>
    /// Whether all records before a segment are older than that. A time that lies ahead is one of a wrong clock: the next segment tells.
    /// </summary>
    private bool EndedBefore(SegmentFile next, DateTimeOffset time, DateTimeOffset now)
    {
        lock (_gate)
        {
            SegmentFile? told = _segments.FirstOrDefault(segment => segment.First >= next.First && _headers[segment.First].Created <= now);
            return told is not null && _headers[told.First].Created < time;
        }
    }

    /// <summary>Registers a consumer at a place, not while a segment is removed because there was none.</summary>
    internal async ValueTask BetweenRemovalsAsync(
        Func<JournalPosition, CancellationToken, ValueTask> register, JournalPosition place, CancellationToken cancellationToken)
    {
        await _removing.WaitAsync(cancellationToken).ConfigureAwait(false);
        try
        {
            await register(place, cancellationToken).ConfigureAwait(false);
        }
        finally
        {
            _removing.Release();
        }
    }

    /// <summary>Removes a segment, unless a consumer has not processed it.</summary>
    private async ValueTask<bool> RemoveAsync(
        SegmentFile oldest, SegmentFile next, bool pastConsumers, CancellationToken cancellationToken)
    {
        // Holds no thread: who registers a consumer may need it.
        await _removing.WaitAsync(cancellationToken).ConfigureAwait(false);
        try
        {
            // Asked for each: a consumer may have been registered since.
            if (!pastConsumers && next.First > JournalConsumer.Least(_folder, Id))
            {
                return false;
            }

            JournalFolder.ThrowIfNotInPlace(_fileLock);
            System.IO.File.Delete(oldest.Path);
            return true;
        }
        finally
        {
            _removing.Release();
        }
    }

    /// <summary>
    /// Removes the oldest segments, as long as the condition holds of the oldest and the next one, and consumers have processed them.
    /// </summary>
    private async Task RemoveWhileAsync(
        Func<SegmentFile, SegmentFile, bool> isOld, bool pastConsumers, CancellationToken cancellationToken)
    {
        while (_segments is [var oldest, var next, ..] && isOld(oldest, next))
        {
            cancellationToken.ThrowIfCancellationRequested();
            if (!await RemoveAsync(oldest, next, pastConsumers, cancellationToken).ConfigureAwait(false))
            {
                return;
            }

            // One after the other on the device, too: a gap between two segments would be damage.
            FileSync.FlushFolder(_folder);
            lock (_gate)
            {
                _segments = _segments[1..];
                _headers.Remove(oldest.First);
            }
        }
    }
}
