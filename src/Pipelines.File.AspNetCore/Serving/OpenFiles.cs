using System.Collections.Concurrent;
using System.Diagnostics;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// Opens the files that are sent, and keeps them open for the next request. Any thread may call its members.
/// </summary>
/// <remarks>
/// Files are kept only if the system tells every change of them at once (<see cref="SharedFile.TellsChanges"/>). Each request asks
/// what the path leads to now (one statx(2)), and opens the file again if it is another file or has changed. A kept file has no lock on it,
/// and hinders nothing but an unmount. It keeps its place until nobody has requested it for the idle time: if there are more files than
/// places, and they are requested in turn, they would only replace each other. The cache uses at most a quarter of the descriptors that are
/// free when it is created, and closes all of them when the process has no other left.
/// </remarks>
internal sealed class OpenFiles : IDisposable
{
    private readonly ConcurrentDictionary<string, OpenFile> _files = new(StringComparer.Ordinal);
    private readonly int _firstScarce;
    private readonly long _idleMilliseconds;
    private readonly Timer _timer;
    private readonly FilePipelinesMetrics _metrics;

    // Guards the fields below, Count, and every change of _files, which is read without it. Nothing waits under it: files that leave the
    // cache are released after it, because close(2) may wait.
    private readonly Lock _lock = new();
    private bool _isTimerSet;
    private bool _isDisposed;

    /// <param name="maxFiles">The maximum number of kept files; 0 keeps none.</param>
    /// <param name="idleTime">How long a file is kept without a request for it; zero keeps none.</param>
    /// <param name="metrics">Where opened and kept files are counted.</param>
    internal OpenFiles(int maxFiles, TimeSpan idleTime, FilePipelinesMetrics? metrics = null)
    {
        _metrics = metrics ?? FilePipelinesMetrics.Shared;
        _idleMilliseconds = (long)Math.Ceiling(idleTime.TotalMilliseconds);
        SpareDescriptors.GetLimits(out int mostKept, out _firstScarce);
        MaxFiles = OperatingSystem.IsLinux() && _idleMilliseconds > 0 ? Math.Min(maxFiles, mostKept) : 0;
        using (ExecutionContext.SuppressFlow())
        {
            _timer = new Timer(static files => ((OpenFiles)files!).CloseIdle(), this, Timeout.Infinite, Timeout.Infinite);
        }

        if (MaxFiles > 0)
        {
            SpareDescriptors.Add(this);
        }
    }

    /// <summary>
    /// The number of kept files: a racy hint, readable without the lock. (To count, the dictionary would take all of its locks.)
    /// </summary>
    internal int Count { get; private set; }

    /// <summary>Whether the timer is set that closes idle files: a racy hint, readable without the lock.</summary>
    internal bool IsTimerSet => Volatile.Read(ref _isTimerSet);

    /// <summary>The maximum number of kept files.</summary>
    internal int MaxFiles { get; }

    /// <summary>
    /// Opens a file, or takes the one that is kept. The caller releases it. Returns <see langword="null"/> if the file cannot be opened;
    /// the server, which tries next, reports the error.
    /// </summary>
    internal OpenFile? Open(string? path)
    {
        OpenFile? old = null;
        if (path is not null && _files.TryGetValue(path, out OpenFile? kept))
        {
            if (kept.TryUse())
            {
                return kept;
            }

            old = kept;
        }

        // Open the file before anything else: the application looked at the path a moment ago, and may have announced the length. The later
        // the open, the more often the path leads to another file by then.
        SharedFile? file = TryOpen(path);
        if (old is not null)
        {
            Remove(old);
        }

        if (file is null)
        {
            return null;
        }

        _metrics.Opened();
        return TryKeep(path!, file) ?? new OpenFile(file, key: null);
    }

    /// <summary>
    /// Takes a file that is kept, and to which the path still leads, unchanged; <see langword="null"/> if there is none. The caller
    /// releases it.
    /// </summary>
    internal OpenFile? UseKept(string? path)
        => path is not null && _files.TryGetValue(path, out OpenFile? kept) && kept.TryUse() ? kept : null;

    /// <summary>Stops keeping files, and closes those that are unused. Returns <see langword="false"/> if none was kept.</summary>
    internal bool TryCloseUnused()
    {
        OpenFile[] files = RemoveAll(isLast: false);
        Release(files);
        return files.Length > 0;
    }

    /// <summary>Releases all kept files, and keeps none from now on.</summary>
    public void Dispose()
    {
        OpenFile[] files = RemoveAll(isLast: true);
        SpareDescriptors.Remove(this);
        _timer.Dispose();
        Release(files);
    }

    private OpenFile[] RemoveAll(bool isLast)
    {
        lock (_lock)
        {
            _isDisposed |= isLast;
            OpenFile[] files = [.. _files.Values];
            Array.ForEach(files, RemoveLocked);
            return files;
        }
    }

    private static SharedFile? TryOpen(string? path)
    {
        try
        {
            return SpareDescriptors.Open(path!, SharedFile.Open);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or ArgumentException or NotSupportedException)
        {
            return null;
        }
    }

    private static void Release(IEnumerable<OpenFile> files)
    {
        foreach (OpenFile file in files)
        {
            file.Release();
        }
    }

    /// <summary>
    /// Keeps a file that was just opened, if there is room. If another request has kept the same file meanwhile, closes this one and
    /// returns that. Returns <see langword="null"/>, and leaves the file as it is, if it must not be kept.
    /// </summary>
    private OpenFile? TryKeep(string path, SharedFile opened)
    {
        // A relative path may lead to another file later. An empty file is left to the server.
        if (MaxFiles == 0 || !Path.IsPathRooted(path) || opened.Length == 0
            || (int)opened.Handle.DangerousGetHandle() >= _firstScarce || Count >= MaxFiles || !opened.TellsChanges)
        {
            return null;
        }

        OpenFile file = new(opened, path);
        OpenFile? first;
        lock (_lock)
        {
            if (!_files.TryGetValue(path, out first))
            {
                if (!_isDisposed && Count < MaxFiles)
                {
                    AddLocked(path, file);
                }

                return file;
            }
        }

        // If several requests have opened the file at once, the first one is kept and serves the others, too.
        if (!first.Shared.IsSameVersionAs(opened) || !first.TryAddReference())
        {
            return file;
        }

        file.Release();
        return first;
    }

    private void AddLocked(string path, OpenFile file)
    {
        Debug.Assert(_lock.IsHeldByCurrentThread);
        bool isAlive = file.TryAddReference();
        Debug.Assert(isAlive, "Its opener has not released it yet.");
        _files[path] = file;
        Count++;
        _metrics.Kept(1);
        if (!_isTimerSet)
        {
            _isTimerSet = true;
            _timer.Change(_idleMilliseconds, Timeout.Infinite);
        }
    }

    private void Remove(OpenFile file)
    {
        lock (_lock)
        {
            if (!_files.TryGetValue(file.Key!, out OpenFile? kept) || kept != file)
            {
                return;
            }

            RemoveLocked(file);
        }

        file.Release();
    }

    private void CloseIdle()
    {
        List<OpenFile> idle = [];
        lock (_lock)
        {
            if (_isDisposed)
            {
                return;
            }

            long now = Environment.TickCount64;
            long oldest = now;
            foreach (OpenFile file in _files.Values)
            {
                if (file.IsInUse)
                {
                    // The file stays open, and its idle time begins when it has been sent.
                    file.Use();
                }
                else if (now - file.LastUsed >= _idleMilliseconds)
                {
                    idle.Add(file);
                }
                else
                {
                    oldest = Math.Min(oldest, file.LastUsed);
                }
            }

            idle.ForEach(RemoveLocked);
            _isTimerSet = Count > 0;
            if (_isTimerSet)
            {
                // Not sooner than after 1 s (or the idle time), so that one run closes all files that were used shortly after each other.
                _timer.Change(Math.Max(oldest + _idleMilliseconds - now, Math.Min(_idleMilliseconds, 1000)), Timeout.Infinite);
            }
        }

        Release(idle);
    }

    /// <summary>Removes a file from the cache. The caller then releases the cache's reference, without the lock.</summary>
    private void RemoveLocked(OpenFile file)
    {
        Debug.Assert(_lock.IsHeldByCurrentThread);
        _files.TryRemove(file.Key!, out _);
        Count--;
        _metrics.Kept(-1);
    }
}
