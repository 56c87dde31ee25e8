using System.Diagnostics.CodeAnalysis;
using System.Security.Cryptography;
using System.Text.Json;
using Microsoft.AspNetCore.Http;
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

    // A share violation: flock(2) answers EWOULDBLOCK, Windows ERROR_SHARING_VIOLATION.
    private static readonly int s_isLocked = OperatingSystem.IsWindows() ? 32 : OperatingSystem.IsMacOS() ? 35 : 11;

    private static readonly TimeSpan s_longestInterval = TimeSpan.FromHours(1);

    private readonly ITimer _timer;

    // The lock of the counts: the bytes that the unfinished uploads have announced, and of them those of the uploads that requests hold
    // here. What their states tell may be older.
    private readonly Lock _counting = new();
    private readonly Dictionary<string, long> _held = [];
    private long _total;

    // Interlocked: whether somebody looks for expired ones.
    private int _isSweeping;

    internal UploadStore(ResumableUploadOptions options, TimeProvider time)
    {
        Options = options;
        Time = time;
        Folder = Path.GetFullPath(options.Folder);
        MakeFolder(Folder);
        if (options.MaxTotalLength is not null)
        {
            CountAll();
        }

        TimeSpan interval = options.Expiration / 2 < s_longestInterval ? options.Expiration / 2 : s_longestInterval;
        _timer = time.CreateTimer(static store => ((UploadStore)store!).Sweep(), this, TimeSpan.FromSeconds(1), interval);
    }

    internal ResumableUploadOptions Options { get; }

    internal TimeProvider Time { get; }

    /// <summary>The full path of the folder.</summary>
    internal string Folder { get; }

    internal DateTime Now => Time.GetUtcNow().UtcDateTime;

    /// <summary>Ends the look for expired uploads.</summary>
    public void Dispose() => _timer.Dispose();

    internal static string NewId() => Convert.ToHexStringLower(RandomNumberGenerator.GetBytes(IdLength / 2));

    internal static bool IsId([NotNullWhen(true)] string? text) => text?.Length == IdLength && text.All(char.IsAsciiHexDigitLower);

    /// <summary>
    /// How much of <see cref="ResumableUploadOptions.MaxTotalLength"/> an upload takes: what it has announced, or else what has come.
    /// </summary>
    internal static long CountOf(UploadState state) => state.IsFinished && !state.IsPartial ? 0 : state.Length ?? state.Offset;

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
        catch (Exception e) when (e is FileNotFoundException or JsonException)
        {
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
        if (!TryCount(CountOf(state), id))
        {
            throw TooMuch();
        }

        StoredUpload upload;
        try
        {
            upload = Open(id, state, OpenLocked(LockPathOf(id), FileMode.CreateNew));
        }
        catch
        {
            StoredUpload.TryDelete(LockPathOf(id));
            Release(id, -CountOf(state));
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

        SafeFileHandle turn = OpenLocked(LockPathOf(id), FileMode.OpenOrCreate);
        try
        {
            // Now that nobody else changes it. Who had the lock may have removed it.
            if (Read(id) is { } state)
            {
                return Open(id, state, turn);
            }

            System.IO.File.Delete(LockPathOf(id));
        }
        catch
        {
            turn.Dispose();
            throw;
        }

        turn.Dispose();
        return null;
    }

    // Takes over the lock, also if it throws.
    private StoredUpload Open(string id, UploadState state, SafeFileHandle turn)
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

    /// <summary>Counts bytes, if there is room for them; fewer always are.</summary>
    internal bool TryCount(long bytes, string? id = null)
    {
        if (Options.MaxTotalLength is not { } most)
        {
            return true;
        }

        lock (_counting)
        {
            if (bytes > 0 && bytes > most - _total)
            {
                return false;
            }

            _total += bytes;
            if (id is not null)
            {
                _held[id] = _held.GetValueOrDefault(id) + bytes;
            }

            return true;
        }
    }

    /// <summary>From here on an upload takes what the request that holds it says, not what its state tells.</summary>
    internal void Hold(string id, long counted)
    {
        lock (_counting)
        {
            _held[id] = counted;
        }
    }

    /// <summary>Counts the last bytes of a request that has held an upload.</summary>
    internal void Release(string id, long bytes)
    {
        lock (_counting)
        {
            _ = TryCount(bytes);
            _held.Remove(id);
        }
    }

    internal static BadHttpRequestException TooMuch()
        => new("There is no room for another upload now.", StatusCodes.Status507InsufficientStorage);

    /// <summary>Removes the uploads that have expired, and what a killed process has left. One that a request holds stays.</summary>
    internal void Sweep()
    {
        if (Interlocked.Exchange(ref _isSweeping, 1) == 1)
        {
            return;
        }

        try
        {
            foreach (string id in Ids(StateSuffix).Concat(Ids(PartSuffix)).Concat(Ids(LockSuffix)).ToHashSet())
            {
                RemoveIfExpired(id);
            }

            foreach (string path in Directory.EnumerateFiles(Folder, ".pipelines-file-*"))
            {
                if (IsOld(path))
                {
                    System.IO.File.Delete(path);
                }
            }

            if (Options.MaxTotalLength is not null)
            {
                // Other processes finish and remove uploads, too.
                CountAll();
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // The folder is gone, or a file cannot be removed: the next look tries again.
        }
        finally
        {
            Volatile.Write(ref _isSweeping, 0);
        }
    }

    private void RemoveIfExpired(string id)
    {
        try
        {
            UploadState? state = Read(id);
            if (state is not null ? !IsOver(state) : !IsOld(StatePathOf(id)) || !IsOld(PartPathOf(id)) || !IsOld(LockPathOf(id)))
            {
                return;
            }

            using SafeFileHandle turn = OpenLocked(LockPathOf(id), FileMode.OpenOrCreate);
            state = Read(id) ?? new UploadState();
            using StoredUpload upload = new(this, id, state, Locate(id, state), bytes: null, turn);
            if (IsOver(state))
            {
                upload.Remove();
            }
        }
        catch (Exception e) when (e is BadHttpRequestException or IOException or UnauthorizedAccessException)
        {
            // It is used just now, or cannot be read or removed: the next look tries again.
        }
    }

    // Of a final upload only one request can make anything. Without it, nobody goes on: its process was killed.
    private bool IsOver(UploadState state) => state.Expires <= Now || state is { IsFinal: true, IsFinished: false };

    private void CountAll()
    {
        lock (_counting)
        {
            // Decimal: without a limit, clients may have announced more than fits into a long.
            decimal total = _held.Values.Sum(static bytes => (decimal)bytes)
                + Ids(StateSuffix).Sum(id => !_held.ContainsKey(id) && Read(id) is { } state ? (decimal)CountOf(state) : 0);
            _total = (long)Math.Min(total, long.MaxValue);
        }
    }

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
        => FileIdentity.TryGet(path, out FileIdentity identity) && identity.ToString() == state.Identity;

    /// <summary>Opens a file alone, which keeps everybody else out who does.</summary>
    /// <exception cref="BadHttpRequestException">Another request has it open (423).</exception>
    private static SafeFileHandle OpenLocked(string path, FileMode mode)
    {
        try
        {
            // Windows removes an open file only if that was agreed on; there every share but this one keeps others out.
            FileShare share = OperatingSystem.IsWindows() ? FileShare.Delete : FileShare.None;
            return SpareDescriptors.Open(path, path => System.IO.File.OpenHandle(path, mode, FileAccess.ReadWrite, share));
        }
        catch (IOException e) when ((e.HResult & 0xFFFF) == s_isLocked)
        {
            throw new BadHttpRequestException("Another request sends this upload.", StatusCodes.Status423Locked, e);
        }
    }

    private static void MakeFolder(string path)
    {
        if (OperatingSystem.IsWindows())
        {
            Directory.CreateDirectory(path);
        }
        else
        {
            Directory.CreateDirectory(path, UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute);
        }
    }
}
