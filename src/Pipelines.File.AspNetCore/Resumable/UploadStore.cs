using System.Diagnostics.CodeAnalysis;
using System.Security.Cryptography;
using System.Text.Json;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The folder of the resumable uploads: ID.json is the state of one, and ID.part has its bytes until it is saved. An upload exists as long
/// as its state does. Whoever changes it holds the lock of ID.lock, also among processes. The bytes themselves are not locked: as soon as
/// they have their name, others read them.
/// </summary>
internal sealed class UploadStore : IDisposable
{
    private const string PartSuffix = ".part";
    private const string StateSuffix = ".json";
    private const string LockSuffix = ".lock";
    private const int IdLength = 32;

    private static readonly TimeSpan s_longestInterval = TimeSpan.FromHours(1);

    // A request that another one takes the upload over from has this time to write down what has come.
    private static readonly TimeSpan s_longestTakeOver = TimeSpan.FromSeconds(10);

    // What was refused for want of room has the next look come so soon, because another process may have made room.
    private static readonly TimeSpan s_shortestInterval = TimeSpan.FromMinutes(1);

    private readonly ITimer _timer;
    private readonly UploadQuota _quota;
    private readonly ILogger _logger;

    // Held by who looks through the folder.
    private readonly Lock _looking = new();

    // Ends with the first look, which has counted what is in the folder.
    private readonly TaskCompletionSource _counted = new(TaskCreationOptions.RunContinuationsAsynchronously);

    // Guarded by itself: the uploads that requests of this process hold, and the parts that they read, by how many of them.
    private readonly Dictionary<string, StoredUpload> _requests = [];
    private readonly Dictionary<string, int> _read = [];

    // Volatile, the first set and the second asked for by anybody.
    private volatile bool _isDisposed;
    private long _lastLook;

    internal UploadStore(ResumableUploadOptions options, TimeProvider time, ILogger? logger = null, string? folder = null)
    {
        Options = options;
        Time = time;
        _logger = logger ?? NullLogger.Instance;
        _quota = new UploadQuota(options);
        Folder = Path.GetFullPath(folder ?? options.Folder);
        PrivateFolder.MakeAndCheck(Folder, options.AllowSharedFolder);
        TimeSpan interval = options.Expiration / 2 < s_longestInterval ? options.Expiration / 2 : s_longestInterval;
        _timer = time.CreateTimer(static store => ((UploadStore)store!).TrySweep(), this, interval, interval);
        _ = ThreadPool.UnsafeQueueUserWorkItem(static store => store.TrySweep(), this, preferLocal: false);
    }

    internal ResumableUploadOptions Options { get; }

    internal TimeProvider Time { get; }

    /// <summary>The full path of the folder.</summary>
    internal string Folder { get; }

    internal DateTime Now => Time.GetUtcNow().UtcDateTime;

    /// <summary>Ends the look for expired uploads, and waits until it has ended.</summary>
    public void Dispose()
    {
        _isDisposed = true;
        _timer.Dispose();
        lock (_looking)
        {
        }
    }

    internal static string NewId() => Convert.ToHexStringLower(RandomNumberGenerator.GetBytes(IdLength / 2));

    internal static bool IsId([NotNullWhen(true)] string? text) => text?.Length == IdLength && text.All(char.IsAsciiHexDigitLower);

    /// <summary>
    /// How much of <see cref="ResumableUploadOptions.MaxTotalLength"/> an upload takes: what it has announced, or else what has come.
    /// </summary>
    internal static long CountOf(UploadState state) => Takes(state) ? state.Length ?? state.Offset : 0;

    /// <summary>Whether it takes anything: what is finished, and no part of a concatenation to come, takes nothing.</summary>
    internal static bool Takes(UploadState state) => !state.IsFinished || state.IsPartial;

    internal string StatePathOf(string id) => Path.Combine(Folder, id + StateSuffix);

    internal string PartPathOf(string id) => Path.Combine(Folder, id + PartSuffix);

    internal string LockPathOf(string id) => Path.Combine(Folder, id + LockSuffix);

    /// <summary>The state of an upload, without its lock; <see langword="null"/> if there is none, or it is damaged.</summary>
    internal UploadState? Read(string id)
    {
        if (!IsId(id))
        {
            // A client's, of which no path may be made.
            return null;
        }

        try
        {
            byte[] bytes = SpareDescriptors.Open(StatePathOf(id), System.IO.File.ReadAllBytes);
            return JsonSerializer.Deserialize(bytes, UploadStateContext.Default.UploadState);
        }
        catch (Exception e) when (e is FileNotFoundException or DirectoryNotFoundException)
        {
            return null;
        }
        catch (JsonException e)
        {
            _logger.LogUploadBroken(id, e);
            return null;
        }
    }

    /// <summary>The state as a client may know it: with as many bytes as are there.</summary>
    internal UploadState? Peek(string id)
    {
        UploadState? state = Read(id);
        while (state is { IsFinished: false })
        {
            long length = LengthOf(id, state);
            UploadState? now = Read(id);
            if (length >= state.Offset || now == state)
            {
                return state with { Offset = Math.Min(state.Offset, length) };
            }

            // It was moved while it was looked for, and the state tells now where to.
            state = now;
        }

        return state;
    }

    /// <summary>Makes a new upload, and holds its lock.</summary>
    /// <exception cref="BadHttpRequestException">All uploads together are too long (507).</exception>
    internal async Task<StoredUpload> CreateAsync(string id, UploadState state)
    {
        await _counted.Task.ConfigureAwait(false);
        if (!_quota.TryAdd(id, state.Owner, CountOf(state)))
        {
            throw TooMuch();
        }

        StoredUpload upload;
        try
        {
            try
            {
                upload = Open(id, state, TakeTurn(id));
            }
            catch (DirectoryNotFoundException)
            {
                // Somebody has removed the folder.
                PrivateFolder.MakeAndCheck(Folder, Options.AllowSharedFolder);
                upload = Open(id, state, TakeTurn(id));
            }
        }
        catch
        {
            StoredUpload.TryDelete(LockPathOf(id));
            _quota.Release(id, null);
            throw;
        }

        try
        {
            await upload.SaveStateAsync(state).ConfigureAwait(false);
            return upload;
        }
        catch
        {
            using (upload)
            {
                upload.Remove();
            }

            throw;
        }
    }

    /// <summary>Opens an upload to change it; <see langword="null"/> if there is none.</summary>
    /// <exception cref="BadHttpRequestException">Another request holds its lock (423).</exception>
    internal StoredUpload? Open(string id)
    {
        if (Read(id) is null)
        {
            return null;
        }

        FileLock turn = TakeTurn(id);
        try
        {
            // Now that nobody else changes it. Who had the lock may have removed it.
            if (Read(id) is { } state)
            {
                return Open(id, state, turn);
            }

            StoredUpload.TryDelete(LockPathOf(id));
        }
        catch
        {
            turn.Dispose();
            throw;
        }

        turn.Dispose();
        return null;
    }

    /// <summary>
    /// The same, but a request of this process that waits for bytes of the upload gives it up: its client has lost the connection, and has
    /// made another one.
    /// </summary>
    internal async Task<StoredUpload?> TakeOverAsync(string id)
    {
        for (int tries = 0; ; tries++)
        {
            try
            {
                return Open(id);
            }
            catch (BadHttpRequestException) when (tries < 3 && RequestOf(id)?.TryEnd() is { } ended)
            {
                _logger.LogUploadTakenOver(id);
                await Task.WhenAny(ended, Task.Delay(s_longestTakeOver)).ConfigureAwait(false);
            }
        }
    }

    /// <summary>Whether a request is at it, in this process or another one: then it does not expire.</summary>
    internal bool IsUnderWay(string id)
    {
        lock (_read)
        {
            if (_read.ContainsKey(id))
            {
                return true;
            }
        }

        if (_quota.IsHeld(id))
        {
            return true;
        }

        using FileLock? turn = FileLock.TryAcquire(LockPathOf(id));
        if (turn is not null)
        {
            StoredUpload.TryDelete(LockPathOf(id));
        }

        return turn is null;
    }

    /// <summary>Keeps the parts of a concatenation from expiring until the result is disposed of.</summary>
    internal IDisposable Keep(IReadOnlyList<string> parts)
    {
        lock (_read)
        {
            foreach (string part in parts)
            {
                _read[part] = _read.GetValueOrDefault(part) + 1;
            }
        }

        return new Kept(this, parts);
    }

    private StoredUpload? RequestOf(string id)
    {
        lock (_requests)
        {
            return _requests.GetValueOrDefault(id);
        }
    }

    // Takes over the lock, also if it throws.
    private StoredUpload Open(string id, UploadState state, FileLock turn)
    {
        SafeFileHandle? bytes = null;
        try
        {
            string path = Locate(id, state);
            bytes = state.IsFinished ? null : OpenBytes(path, isPart: path == PartPathOf(id), isSaved: path == state.SavingTo);
            return new StoredUpload(this, id, state, path, bytes, turn);
        }
        catch
        {
            bytes?.Dispose();
            turn.Dispose();
            throw;
        }
    }

    // The bytes have their permissions before they have their name. A process that was killed then may have left them read-only.
    private static SafeFileHandle OpenBytes(string path, bool isPart, bool isSaved)
    {
        FileMode mode = isPart ? FileMode.OpenOrCreate : FileMode.Open;

        // What has its name is only read; but Windows syncs only what is open for writing.
        FileAccess access = isSaved && !OperatingSystem.IsWindows() ? FileAccess.Read : FileAccess.ReadWrite;
        try
        {
            return Open(path);
        }
        catch (UnauthorizedAccessException) when (!isSaved && !OperatingSystem.IsWindows())
        {
            System.IO.File.SetUnixFileMode(path, UnixFileMode.UserRead | UnixFileMode.UserWrite);
            return Open(path);
        }

        SafeFileHandle Open(string path) => SpareDescriptors.Open(
            path, path => System.IO.File.OpenHandle(path, mode, access, FileShare.ReadWrite | FileShare.Delete));
    }

    /// <summary>
    /// Where the bytes of an upload are: while it is saved they go from the folder to a temporary name beside the new one, and from there
    /// to it. A process may have been killed between any two of these steps.
    /// </summary>
    internal string Locate(string id, UploadState state)
    {
        string part = PartPathOf(id);
        if (state.SavingTo is { } name && !System.IO.File.Exists(part))
        {
            string between = BetweenPathOf(id, name);
            if (System.IO.File.Exists(between))
            {
                return between;
            }

            if (IsAt(name, state))
            {
                return name;
            }
        }

        return part;
    }

    /// <summary>The temporary name beside the name that the upload takes.</summary>
    internal static string BetweenPathOf(string id, string name)
        => Path.Combine(Path.GetDirectoryName(name)!, ".pipelines-file-" + id[..16]);

    /// <summary>Counts bytes that belong to no upload. For tests.</summary>
    internal bool TryCount(long bytes)
    {
        _counted.Task.GetAwaiter().GetResult();
        return _quota.TryGrow("", bytes);
    }

    /// <summary>Counts more bytes of an upload, if there is room for them; fewer always have room.</summary>
    internal bool TryCount(long bytes, string id) => _quota.TryGrow(id, bytes);

    /// <summary>From here on an upload takes what the request that holds it says, not what its state tells.</summary>
    internal void Hold(StoredUpload upload, long counted)
    {
        _quota.Hold(upload.Id, upload.State.Owner, counted);
        lock (_requests)
        {
            _requests[upload.Id] = upload;
        }
    }

    /// <summary>The request has ended that has held an upload.</summary>
    /// <param name="upload">The upload.</param>
    /// <param name="bytes">What it takes from here on; <see langword="null"/>: nothing.</param>
    internal void Release(StoredUpload upload, long? bytes)
    {
        lock (_requests)
        {
            _requests.Remove(upload.Id);
        }

        _quota.Release(upload.Id, bytes);
    }

    internal BadHttpRequestException TooMuch()
    {
        if (Time.GetElapsedTime(Volatile.Read(ref _lastLook)) > s_shortestInterval)
        {
            Volatile.Write(ref _lastLook, Time.GetTimestamp());
            _ = ThreadPool.UnsafeQueueUserWorkItem(static store => store.TrySweep(), this, preferLocal: false);
        }

        return new BadHttpRequestException("There is no room for another upload now.", StatusCodes.Status507InsufficientStorage);
    }

    // A timer calls it: what it throws would end the process.
    private void TrySweep()
    {
        try
        {
            if (_looking.TryEnter())
            {
                try
                {
                    Look();
                }
                finally
                {
                    _looking.Exit();
                }
            }
        }
        catch (Exception e)
        {
            // A logger has thrown.
            System.Diagnostics.Debug.WriteLine(e);
        }
    }

    /// <summary>
    /// Removes the uploads that have expired, and what a killed process has left, and counts the others. One that a request holds stays.
    /// </summary>
    internal void Sweep()
    {
        lock (_looking)
        {
            Look();
        }
    }

    private void Look()
    {
        Volatile.Write(ref _lastLook, Time.GetTimestamp());
        try
        {
            _quota.BeginLook();
            foreach (string id in Ids(StateSuffix).Concat(Ids(PartSuffix)).Concat(Ids(LockSuffix)).ToHashSet())
            {
                if (_isDisposed)
                {
                    return;
                }

                RemoveIfExpired(id);
            }

            _quota.EndLook();
            foreach (string path in Directory.EnumerateFiles(Folder, ".pipelines-file-*"))
            {
                if (IsOld(path))
                {
                    System.IO.File.Delete(path);
                }
            }
        }
        catch (DirectoryNotFoundException)
        {
            // Somebody has removed the folder, and the next upload makes it again.
            _quota.EndLook();
        }
        catch (Exception e)
        {
            // A file cannot be removed: the next look tries again.
            _logger.LogUploadSweepFailed(Folder, e);
        }
        finally
        {
            _counted.TrySetResult();
        }
    }

    private void RemoveIfExpired(string id)
    {
        UploadState? state = null;
        try
        {
            state = Read(id);
            if (state is not null)
            {
                _quota.Saw(id, state);
            }

            bool isOver = state is not null ? IsOver(state) : IsOld(StatePathOf(id)) && IsOld(PartPathOf(id)) && IsOld(LockPathOf(id));
            if (!isOver || IsUnderWay(id))
            {
                return;
            }

            using FileLock turn = TakeTurn(id);
            state = Read(id) ?? new UploadState();
            if (!IsOver(state))
            {
                return;
            }

            using StoredUpload upload = new(this, id, state, PlaceOf(id, state), bytes: null, turn);
            upload.Remove();
            if (!state.IsFinished)
            {
                _logger.LogUploadExpired(id, state.Offset);
            }
        }
        catch (BadHttpRequestException)
        {
            // Another process is at it.
        }
        catch (Exception e)
        {
            // It cannot be read or removed now, or its state is not ours: the next look tries again, and it is counted as before.
            _quota.Saw(id, null);
            _logger.LogUploadSweepFailed(StatePathOf(id), e);
        }
    }

    // A state may tell of a place that no file can have.
    private string PlaceOf(string id, UploadState state)
    {
        try
        {
            return Locate(id, state);
        }
        catch (ArgumentException)
        {
            return PartPathOf(id);
        }
    }

    // Of a final upload only one request can make anything. Without it, nobody goes on: its process was killed.
    private bool IsOver(UploadState state) => state.Expires <= Now || state is { IsFinal: true, IsFinished: false };

    // A file that is not there is old, too.
    private bool IsOld(string path) => FileTimes.WrittenOf(path) < Now - Options.Expiration;

    private IEnumerable<string> Ids(string suffix)
        => Directory.EnumerateFiles(Folder, "*" + suffix).Select(path => Path.GetFileNameWithoutExtension(path)).Where(IsId);

    private long LengthOf(string id, UploadState state)
    {
        FileInfo file = new(Locate(id, state));
        return file.Exists ? file.Length : 0;
    }

    /// <summary>Whether the bytes, or their copy, have that name.</summary>
    internal static bool IsAt(string path, UploadState state)
        => !path.Contains('\0') && FileIdentity.TryGet(path, out FileIdentity identity) && identity.ToString() == state.Identity;

    /// <summary>Takes the lock of an upload.</summary>
    /// <exception cref="BadHttpRequestException">Another request has it (423).</exception>
    private FileLock TakeTurn(string id)
        => SpareDescriptors.Open(LockPathOf(id), FileLock.TryAcquire)
            ?? throw new BadHttpRequestException("Another request sends this upload.", StatusCodes.Status423Locked);

    private sealed class Kept(UploadStore store, IReadOnlyList<string> parts) : IDisposable
    {
        public void Dispose()
        {
            lock (store._read)
            {
                foreach (string part in parts)
                {
                    if (--store._read[part] == 0)
                    {
                        store._read.Remove(part);
                    }
                }
            }
        }
    }
}
