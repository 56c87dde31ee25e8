using System.Diagnostics.CodeAnalysis;

namespace Pipelines.File;

/// <content>Removes old segments, and copies all of them.</content>
public sealed partial class Journal
{
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

    /// <summary>As above, and also removes what consumers have not processed, if it is told to.</summary>
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
                () =>
                {
                    long least = pastConsumers ? sequence : Math.Min(sequence, JournalConsumer.Least(_folder, Id));
                    RemoveWhile((_, next) => next.First <= least, cancellationToken);
                },
                cancellationToken).ConfigureAwait(false);
        }
        finally
        {
            _maintenance.Release();
        }
    }

    /// <summary>
    /// Copies the journal, as far as it is committed now, into another folder, while records are appended: what is copied can be opened.
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
            ObjectDisposedException.ThrowIf(Volatile.Read(ref _closing) is not null, this);
            ((IJournalSource)this).ThrowIfFailed();
            await SyncAsync().ConfigureAwait(false);
            return await Task.Run(() => BackupTo(path, cancellationToken), cancellationToken).ConfigureAwait(false);
        }
        finally
        {
            _maintenance.Release();
        }
    }

    /// <summary>
    /// Opens a consumer, which is told of new records at once, and of which <see cref="JournalConsumer.CommitAsync"/> puts them on the
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

    private JournalPosition BackupTo(string folder, CancellationToken cancellationToken)
    {
        JournalFolder.Make(folder);
        if (SegmentFile.In(folder).Length > 0)
        {
            throw new IOException($"The folder has a journal already: '{folder}'");
        }

        JournalPosition end = Position;

        // Those that begin meanwhile, too. What comes while the last one is copied is a torn end, or records more: both can be opened.
        for (int i = 0; i < _segments.Length; i++)
        {
            cancellationToken.ThrowIfCancellationRequested();
            string copy = Path.Combine(folder, Path.GetFileName(_segments[i].Path));
            System.IO.File.Copy(_segments[i].Path, copy);
            SegmentFile.Sync(copy);
        }

        FileSync.FlushFolder(folder);
        return end;
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
                Retain();
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

    private void Retain()
    {
        long least = _options.RetainsPastConsumers ? long.MaxValue : JournalConsumer.Least(_folder, Id);
        if (_options.RetainAge is { } age)
        {
            DateTimeOffset now = DateTimeOffset.UtcNow;
            DateTimeOffset oldest = age < now - DateTimeOffset.MinValue ? now - age : DateTimeOffset.MinValue;
            RemoveWhile((_, next) => next.First <= least && EndedBefore(next, oldest, now), CancellationToken.None);
        }

        if (_options.RetainBytes is { } most)
        {
            long bytes = _segments.Sum(LengthOf);
            RemoveWhile(
                (segment, next) =>
                {
                    bool isMore = bytes > most && next.First <= least;
                    bytes -= isMore ? LengthOf(segment) : 0;
                    return isMore;
                },
                CancellationToken.None);
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

    /// <summary>Removes the oldest segments, as long as the condition holds of the oldest and the next one.</summary>
    private void RemoveWhile(Func<SegmentFile, SegmentFile, bool> isOld, CancellationToken cancellationToken)
    {
        while (_segments is [var oldest, var next, ..] && isOld(oldest, next))
        {
            cancellationToken.ThrowIfCancellationRequested();
            JournalFolder.ThrowIfNotInPlace(_fileLock);
            System.IO.File.Delete(oldest.Path);

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
