using System.IO.Enumeration;
using Microsoft.Extensions.Logging;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// Looks through the folder of a cache now and then, on a thread of its own: removes what has expired, and what was not read for the
/// longest time where there are too many bytes. Of the processes that share a folder one looks at a time.
/// </summary>
internal sealed class FileCacheSweep : IDisposable
{
    /// <summary>Of <c>MaxSize</c>, after so much was stored the folder is looked through again.</summary>
    private const int StoredShare = 20;

    /// <summary>The part of <c>MaxSize</c> that the files of tags may take.</summary>
    private const int TagShare = 4;

    private const int Block = 4096;

    private static readonly TimeSpan s_interval = TimeSpan.FromHours(1);

    // A temporary name of a writer that was killed, on a file system that has no files without a name.
    private static readonly TimeSpan s_abandoned = TimeSpan.FromHours(1);

    // An entry gets its time only after its name.
    private static readonly TimeSpan s_grace = TimeSpan.FromMinutes(1);

    private readonly string _folder;
    private readonly long _maxSize;
    private readonly TimeProvider _time;
    private readonly FileCacheMetrics _metrics;
    private readonly ILogger _logger;
    private readonly Action _dropTags;
    private readonly ITimer _timer;
    private readonly CancellationTokenSource _stop = new();

    // Interlocked: bytes since the last look.
    private long _stored;

    // Under _lock: the thread of the look that is under way. The thread itself sets it back.
    private readonly Lock _lock = new();
    private Thread? _looking;

    // Held by who makes room. The others who wait for it meanwhile see by the count that it was made.
    private readonly SemaphoreSlim _makingRoom = new(1);
    private int _timesRoomWasMade;
    private bool _wasRoomMade;

    internal FileCacheSweep(
        string folder, long maxSize, TimeProvider time, FileCacheMetrics metrics, ILogger logger, Action dropTags)
    {
        _logger = logger;
        _dropTags = dropTags;
        _folder = folder;
        _maxSize = maxSize;
        _time = time;
        _metrics = metrics;
        _timer = time.CreateTimer(static sweep => ((FileCacheSweep)sweep!).Begin(), this, TimeSpan.FromSeconds(1), s_interval);
    }

    /// <summary>Ends a look and waits until it has ended, so that the folder is left alone from now on.</summary>
    public void Dispose()
    {
        _timer.Dispose();
        Thread? looking;
        lock (_lock)
        {
            _stop.Cancel();
            looking = _looking;
        }

        // A listener of the metrics is called by the look.
        if (looking != Thread.CurrentThread)
        {
            looking?.Join();
        }
    }

    /// <summary>Counts what was stored, and begins a look where that is enough.</summary>
    internal void Stored(long bytes)
    {
        if (Interlocked.Add(ref _stored, OnDisk(bytes)) > _maxSize / StoredShare)
        {
            Begin();
        }
    }

    /// <summary>
    /// Removes the oldest entries at once, because the file system is full: a tenth of all, or as many as a new one takes.
    /// </summary>
    /// <param name="bytes">The length of the new one. It does not drive out more than a half of the others.</param>
    /// <param name="cancellationToken">Cancels the waiting for others who make room.</param>
    /// <returns>Whether there is more room, so that it may be tried again.</returns>
    internal async ValueTask<bool> TryMakeRoomAsync(long bytes, CancellationToken cancellationToken)
    {
        int times = Volatile.Read(ref _timesRoomWasMade);
        await _makingRoom.WaitAsync(cancellationToken).ConfigureAwait(false);
        try
        {
            if (times == _timesRoomWasMade)
            {
                // It may take as long as a look does. It needs no file, not even that of the lock.
                _wasRoomMade = await Task.Factory.StartNew(
                    () => TryMakeRoom(bytes), CancellationToken.None, TaskCreationOptions.LongRunning, TaskScheduler.Default)
                    .ConfigureAwait(false);
                Volatile.Write(ref _timesRoomWasMade, times + 1);
            }

            return _wasRoomMade;
        }
        catch (TaskSchedulerException)
        {
            // No thread can be started.
            return false;
        }
        finally
        {
            _makingRoom.Release();
        }
    }

    private bool TryMakeRoom(long bytes)
    {
        try
        {
            return RemoveExpiredAndOldest(total => OnDisk(bytes) > total / 2 ? total : total - Math.Max(total / 10, OnDisk(bytes)));
        }
        catch (Exception exception)
        {
            // Also what a listener of the metrics has thrown: the entry is not stored, and why is known already.
            System.Diagnostics.Debug.WriteLine(exception);
            return false;
        }
    }

    private void Begin()
    {
        lock (_lock)
        {
            if (_stop.IsCancellationRequested || _looking is not null)
            {
                return;
            }

            Interlocked.Exchange(ref _stored, 0);
            try
            {
                _looking = new Thread(Look) { IsBackground = true, Name = "Pipelines.File cache" };
                _looking.Start();
            }
            catch (OutOfMemoryException)
            {
                // No thread can be started, also for want of a descriptor. The next look tries again: a timer calls this, and would end the
                // application with what is thrown.
                _looking = null;
            }
        }
    }

    /// <summary>One look; nothing leaves it.</summary>
    internal void Look()
    {
        try
        {
            // Null: another process looks.
            using FileLock? alone = FileLock.TryAcquire(Path.Combine(_folder, "lock"));
            if (alone is not null)
            {
                long tags = BytesOfTags();
                if (tags > _maxSize / TagShare)
                {
                    _dropTags();
                    tags = BytesOfTags();
                }

                RemoveExpiredAndOldest(total => total + tags <= _maxSize ? total : Math.Max(0, (_maxSize / 10 * 9) - tags), tags);
            }
        }
        catch (Exception exception) when (exception is OperationCanceledException or DirectoryNotFoundException)
        {
            // The application ends; or the folder is gone, and the next entry makes it again.
        }
        catch (Exception exception)
        {
            // Nobody is above this to catch it: it would end the process. The next look tries again.
            TryLog(exception);
        }
        finally
        {
            lock (_lock)
            {
                _looking = null;
            }
        }
    }

    // A logger may throw, too.
    private void TryLog(Exception exception)
    {
        try
        {
            _logger.LogCacheSweepFailed(_folder, exception);
        }
        catch (Exception e)
        {
            System.Diagnostics.Debug.WriteLine(e);
        }
    }

    /// <summary>The files of tags, without those that are being written.</summary>
    internal static IEnumerable<string> TagsIn(string folder)
        => Directory.Exists(folder) ? Directory.EnumerateFiles(folder, new string('?', 32)).Where(IsTag) : [];

    private static bool IsTag(string path) => !Path.GetFileName(path.AsSpan()).Contains('.');

    private long BytesOfTags() => TagsIn(Path.Combine(_folder, "tags")).LongCount() * Block;

    /// <param name="keep">How many bytes of all entries that have not expired may stay.</param>
    /// <param name="others">How many bytes are not those of entries.</param>
    /// <returns>Whether anything was removed.</returns>
    private bool RemoveExpiredAndOldest(Func<long, long> keep, long others = 0)
    {
        DateTime now = _time.GetUtcNow().UtcDateTime;

        // Bytes by the time since the last access, eight classes for each power of two of seconds.
        long[] bytesByAge = new long[8 * 64];
        long total = 0;
        bool isAnyRemoved = false;
        foreach (Seen file in Files())
        {
            if (!file.IsEntry)
            {
                // Its time of last change may already be that of the entry, which expires later.
                if (now - file.Accessed > s_abandoned)
                {
                    _ = FileCache.TryDelete(file.Path);
                }
            }
            else if (file.Changed <= now - s_grace && !FileCache.IsKeptByItself(file.Path, now) && FileCache.TryDelete(file.Path))
            {
                _metrics.Evicted();
                isAnyRemoved = true;
            }
            else
            {
                bytesByAge[AgeClass(now - file.Accessed)] += file.Bytes;
                total += file.Bytes;
            }
        }

        long most = keep(total);
        long excess = total - most;
        int oldest = bytesByAge.Length;
        for (long left = total; left > most; left -= bytesByAge[oldest])
        {
            oldest--;
        }

        // Of the class that the limit lies in only as much goes as has to.
        foreach (Seen file in excess > 0 ? Files() : [])
        {
            int age = file.IsEntry ? AgeClass(now - file.Accessed) : -1;
            if ((age > oldest || (age == oldest && excess > 0)) && FileCache.TryDelete(file.Path))
            {
                _metrics.Evicted();
                isAnyRemoved = true;
                total -= file.Bytes;
                excess -= file.Bytes;
            }
        }

        _metrics.Bytes(total + others);
        return isAnyRemoved;
    }

    private IEnumerable<Seen> Files()
    {
        foreach (string folder in Directory.EnumerateDirectories(_folder, "???"))
        {
            FileSystemEnumerable<Seen> files = new(folder, static (ref FileSystemEntry entry) => See(ref entry), s_everything);
            foreach (Seen file in files)
            {
                _stop.Token.ThrowIfCancellationRequested();
                yield return file;
            }
        }
    }

    private static Seen See(ref FileSystemEntry entry)
    {
        DateTime accessed = FileTimes.Unknown, changed = FileTimes.Unknown;
        try
        {
            accessed = entry.LastAccessTimeUtc.UtcDateTime;
            changed = entry.LastWriteTimeUtc.UtcDateTime;
        }
        catch (ArgumentOutOfRangeException)
        {
            // Not ours, whose times are those of entries: it is old.
        }

        return new Seen(
            entry.ToFullPath(), entry.FileName.Length == 32 && !entry.FileName.Contains('.'), OnDisk(entry.Length), accessed, changed);
    }

    private static readonly EnumerationOptions s_everything = new() { AttributesToSkip = FileAttributes.Directory };

    private static int AgeClass(TimeSpan age)
    {
        double seconds = Math.Max(1, age.TotalSeconds);
        return Math.Min((int)(Math.Log2(seconds) * 8), (8 * 64) - 1);
    }

    private static long OnDisk(long bytes) => (bytes + Block - 1) / Block * Block;

    private readonly record struct Seen(string Path, bool IsEntry, long Bytes, DateTime Accessed, DateTime Changed);
}
