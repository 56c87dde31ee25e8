using System.Collections.Concurrent;
using System.Diagnostics;
using Pipelines.File.IO;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// Opens the files that are sent, and keeps them open for the next request where the system tells of every change (Linux, regular files):
/// each request asks what the path means now (one statx(2)), and what is not the same file in the same state any more is opened anew. What
/// is kept has no lock on it, and stands in nobody's way but an unmount's. What has a place keeps it until nobody has asked for it for the
/// idle time: of more files than there are places, those that are opened in turn would only take them from each other. It takes a quarter
/// of the descriptors that are free when this is made, at most, and gives them up when the process has no other left.
/// </summary>
internal sealed class OpenFiles : ISpareDescriptors, IDisposable
{
    private readonly ConcurrentDictionary<string, OpenFile> _files = new(StringComparer.Ordinal);
    private readonly int _maxFiles;
    private readonly int _firstScarce;
    private readonly long _idleMilliseconds;
    private readonly Timer _timer;

    // Guards the fields below and who is in _files. Nothing waits under it: what leaves the cache is released behind it, as close(2) may
    // wait.
    private readonly Lock _lock = new();
    private bool _isTimerSet;
    private bool _isDisposed;

    /// <param name="maxFiles">So many are kept at most; 0 keeps none.</param>
    /// <param name="idleTime">What nobody has used for so long is closed; zero keeps none.</param>
    internal OpenFiles(int maxFiles, TimeSpan idleTime)
    {
        _idleMilliseconds = (long)Math.Ceiling(idleTime.TotalMilliseconds);
        SpareDescriptors.GetLimits(out int mostKept, out _firstScarce);
        _maxFiles = FileVersion.IsKnown && _idleMilliseconds > 0 ? Math.Min(maxFiles, mostKept) : 0;
        using (ExecutionContext.SuppressFlow())
        {
            _timer = new Timer(static files => ((OpenFiles)files!).CloseIdle(), this, Timeout.Infinite, Timeout.Infinite);
        }

        if (_maxFiles > 0)
        {
            SpareDescriptors.Add(this);
        }
    }

    /// <summary>How many are kept. May be outdated; a concurrent dictionary takes all of its locks to count.</summary>
    internal int Count { get; private set; }

    /// <summary>Whether anything is going to look for idle files. May be outdated.</summary>
    internal bool IsTimerSet => Volatile.Read(ref _isTimerSet);

    /// <summary>
    /// Opens a file, or takes the one that is open. The caller releases it. <see langword="null"/>: it cannot be opened, and whoever tries
    /// next tells why.
    /// </summary>
    internal OpenFile? Open(string? path)
    {
        OpenFile? old = null;
        if (path is not null && _files.TryGetValue(path, out OpenFile? kept) && kept.TryAddReference())
        {
            if (kept.IsCurrent())
            {
                kept.Use();
                return kept;
            }

            old = kept;
        }

        // Before anything else: whoever has announced the length of what the path means has looked a moment ago, and the longer this takes
        // the more often it is another file by then.
        OpenedFile? file = TryOpen(path);
        if (old is not null)
        {
            old.Release();
            Remove(old);
        }

        if (file is null)
        {
            return null;
        }

        FilePipelinesMetrics.Opened();
        return TryKeep(path!, file) ?? new OpenFile(file);
    }

    /// <inheritdoc/>
    public bool TryCloseUnused()
    {
        OpenFile[] files = RemoveAll(isLast: false);
        Release(files);
        return files.Length > 0;
    }

    /// <summary>Closes what nobody uses, and keeps nothing from here on.</summary>
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

    private static OpenedFile? TryOpen(string? path)
    {
        try
        {
            // The server's own sharing, and Delete: whoever renames or removes a file that is being sent may do so on Windows, too.
            return FileOpening.Open(new FileToOpen(path!, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete));
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

    /// <summary>Keeps a file that was just opened, if it is one to keep. <see langword="null"/>: it is not, and is as it was.</summary>
    private OpenFile? TryKeep(string path, OpenedFile backend)
    {
        // A relative path may mean another file later; a file without a known length is made up by the kernel as it is read.
        if (_maxFiles == 0 || !Path.IsPathRooted(path) || backend.Properties is not { IsRegular: true, CanSeek: true, KnownLength: > 0 }
            || (int)backend.Handle.DangerousGetHandle() >= _firstScarce || Count >= _maxFiles
            || !LocalFileSystems.Hold(backend.Handle) || !FileVersion.TryGet(backend.Handle, out FileVersion version))
        {
            return null;
        }

        // Opening has found that nobody has it exclusively (flock(2)); from here on nobody is kept from having it so.
        FileOpening.Unlock(backend.Handle);
        OpenFile file = new(backend, path, version);
        OpenFile? first;
        lock (_lock)
        {
            if (!_files.TryGetValue(path, out first))
            {
                if (!_isDisposed && Count < _maxFiles)
                {
                    AddLocked(path, file);
                }

                return file;
            }
        }

        // Of several that were opened at once the first stays, and serves the others' requests as well.
        if (!first.IsSameAs(file) || !first.TryAddReference())
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
        FilePipelinesMetrics.Kept(1);
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
                    // It is open anyway, and its idle time begins when it has been sent.
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
                // Not for every file by itself where they were used one after the other.
                _timer.Change(Math.Max(oldest + _idleMilliseconds - now, Math.Min(_idleMilliseconds, 1000)), Timeout.Infinite);
            }
        }

        Release(idle);
    }

    /// <summary>Takes it out of the cache, whose reference the caller then releases.</summary>
    private void RemoveLocked(OpenFile file)
    {
        Debug.Assert(_lock.IsHeldByCurrentThread);
        _files.TryRemove(file.Key!, out _);
        Count--;
        FilePipelinesMetrics.Kept(-1);
    }
}
