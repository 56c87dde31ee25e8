using System.Buffers;
using System.Buffers.Binary;
using System.Diagnostics;
using System.IO.Pipelines;
using System.Runtime.InteropServices;
using System.Security.Cryptography;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// Entries in files, one a file, with no index: the name of a file is a hash of its key, in one of 4,096 folders. So nothing has to be read
/// at the start, nothing is held in memory, and processes that share a folder need not tell each other anything.
/// </summary>
/// <remarks>
/// <para>A file appears whole (<see cref="FilePipeWriterOptions.Replace"/>) and is never changed, so whoever has opened it reads one entry,
/// also while another process replaces or removes it. It is not synced: after a power failure its checksum tells whether it is
/// whole.</para>
/// <para>Its time of last change is when it expires, and its time of last access when it was last read, so that
/// <see cref="FileCacheSweep"/> need not open it. The absolute expiration that the entry itself holds decides; of a sliding
/// one there is only that time. Where the system lets nobody set it, the entry tells, and a sliding expiration is an absolute one.</para>
/// <para>A tag is removed by giving it a new random generation, in a file of its own. An entry remembers the generations of its tags and is
/// none any more when one of them is another one. All tagged entries have one more tag, <see cref="Epoch"/>: where the files of tags take
/// too much, it is removed, and they go.</para>
/// </remarks>
internal sealed class FileCache : IDisposable
{
    // Access times are only as exact as eviction needs: a hit need not write each time.
    private static readonly TimeSpan s_accessExactness = TimeSpan.FromMinutes(1);

    // No policy gives an entry a tag of this name; and if one did, its entries would go earlier.
    private const string Epoch = "\0epoch";

    private readonly string _folder;
    private readonly string _tags;
    private readonly bool _allowsShared;
    private readonly ILogger _logger;
    private readonly FileCacheMetrics _metrics;
    private readonly FileCacheSweep _sweep;

    internal FileCache(FileCacheOptions options, TimeProvider time, FileCacheMetrics metrics, ILogger? logger = null)
    {
        _logger = logger ?? NullLogger.Instance;
        _allowsShared = options.AllowSharedFolder;
        _folder = Path.GetFullPath(options.Folder);
        _tags = Path.Combine(_folder, "tags");
        _metrics = metrics;
        Time = time;
        MakeFolder(_tags);
        _sweep = new FileCacheSweep(_folder, options.MaxSize, time, metrics, _logger, DropTags);
    }

    internal TimeProvider Time { get; }

    /// <summary>Looks through the folder now. For tests.</summary>
    internal void Look() => _sweep.Look();

    /// <summary>Ends a look through the folder; entries stay.</summary>
    public void Dispose() => _sweep.Dispose();

    /// <summary>The entry's body in memory that <paramref name="use"/> may read until it returns; false where there is none.</summary>
    internal async ValueTask<bool> TryGetAsync<TState>(
        string key, TState state, Action<TState, ReadOnlySequence<byte>> use, CancellationToken cancellationToken)
    {
        string path = PathOf(key);
        using Activity? activity = FilePipelinesActivities.Begin("pipelines.file.cache.get");
        SafeFileHandle handle;
        try
        {
            // Opening takes less than the way to another thread and back where the system has the folder in memory, which is nearly always.
            handle = Open(path);
        }
        catch (Exception exception) when (exception is FileNotFoundException or DirectoryNotFoundException)
        {
            _metrics.Miss();
            return false;
        }

        FilePipeReader reader = FilePipeReader.Create(handle);
        try
        {
            if (reader.Length > FileCacheEntry.MaxLength)
            {
                return RemoveDamaged(path, handle);
            }

            int length = (int)(reader.Length ?? 0);
            ReadResult result = await reader.ReadAtLeastAsync(Math.Max(length, 1), cancellationToken).ConfigureAwait(false);
            bool found = Use(path, handle, key, result.Buffer, state, use);
            reader.AdvanceTo(result.Buffer.End);
            return found;
        }
        finally
        {
            await reader.CompleteAsync().ConfigureAwait(false);
        }
    }

    /// <summary>The same, and blocks.</summary>
    internal bool TryGet<TState>(string key, TState state, Action<TState, ReadOnlySequence<byte>> use)
    {
        string path = PathOf(key);
        byte[] rented = [];
        try
        {
            using SafeFileHandle handle = Open(path);
            long all = RandomAccess.GetLength(handle);
            if (all > FileCacheEntry.MaxLength)
            {
                return RemoveDamaged(path, handle);
            }

            int length = (int)all;
            rented = ArrayPool<byte>.Shared.Rent(length);
            int read = 0;
            for (int count; read < length && (count = RandomAccess.Read(handle, rented.AsSpan(read, length - read), read)) > 0;)
            {
                read += count;
            }

            return Use(path, handle, key, new ReadOnlySequence<byte>(rented, 0, read), state, use);
        }
        catch (Exception exception) when (exception is FileNotFoundException or DirectoryNotFoundException)
        {
            _metrics.Miss();
            return false;
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(rented);
        }
    }

    /// <summary>Stores an entry, in the place of one with the same key.</summary>
    internal async ValueTask SetAsync(
        string key, ReadOnlySequence<byte> body, ReadOnlyMemory<string> tags, DateTime expires, TimeSpan sliding,
        CancellationToken cancellationToken)
    {
        string path = PathOf(key);
        using Activity? activity = FilePipelinesActivities.Begin("pipelines.file.cache.set");
        if (MakeHead(key, body, tags.Span, expires, sliding) is not { } head)
        {
            return;
        }

        long length = head.Length + body.Length;
        await WithRoomAsync(
            length, () => WriteInFolderAsync(path, head, body, expires, sliding, cancellationToken), cancellationToken)
            .ConfigureAwait(false);
        _sweep.Stored(length);
    }

    /// <summary>The same, and blocks.</summary>
    internal void Set(string key, ReadOnlySequence<byte> body, DateTime expires, TimeSpan sliding)
    {
        string path = PathOf(key);
        if (MakeHead(key, body, [], expires, sliding) is not { } head)
        {
            return;
        }

        long length = head.Length + body.Length;
        WithRoomAsync(
            length,
            () =>
            {
                Write(path, head, body, expires, sliding);
                return ValueTask.CompletedTask;
            },
            CancellationToken.None).AsTask().GetAwaiter().GetResult();
        _sweep.Stored(length);
    }

    /// <summary>Removes the entry, if there is one.</summary>
    internal void Remove(string key)
    {
        try
        {
            System.IO.File.Delete(PathOf(key));
        }
        catch (DirectoryNotFoundException)
        {
        }
    }

    /// <summary>Makes every entry with that tag none. Its space is free when the folder is looked through or it is asked for.</summary>
    internal ValueTask EvictByTagAsync(string tag, CancellationToken cancellationToken)
        => WithRoomAsync(0, () => GiveNewGenerationAsync(tag, cancellationToken), cancellationToken);

    private async ValueTask GiveNewGenerationAsync(string tag, CancellationToken cancellationToken)
    {
        MakeFolder(_tags);
        FilePipeWriter writer = await FilePipeWriter.OpenAsync(TagPathOf(tag), s_tagOptions, cancellationToken).ConfigureAwait(false);
        await using (writer.ConfigureAwait(false))
        {
            writer.Write(RandomNumberGenerator.GetBytes(sizeof(long)));
            await writer.CompleteAsync().ConfigureAwait(false);
        }
    }

    /// <summary>
    /// Removes the files of tags, and with them every entry that has a tag: without its file, a tag would be what it was before it was
    /// first removed. First the entries go, so that none comes back.
    /// </summary>
    private void DropTags()
    {
        // Those that are removed are listed first: a tag that is removed meanwhile, and had no file before, has to keep its own.
        string epoch = TagPathOf(Epoch);
        string[] tags = [.. FileCacheSweep.TagsIn(_tags).Where(path => path != epoch)];
        using (FilePipeWriter writer = FilePipeWriter.Create(epoch, s_tagOptions))
        {
            writer.Write(RandomNumberGenerator.GetBytes(sizeof(long)));
            writer.Complete();
        }

        foreach (string tag in tags)
        {
            _ = TryDelete(tag);
        }
    }

    private static readonly FilePipeWriterOptions s_writerOptions = new() { Replace = true };

    // After a power failure the entries would have their tag again.
    private static readonly FilePipeWriterOptions s_tagOptions = new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable };

    // Where the file system is full the oldest entries go.
    private async ValueTask WithRoomAsync(long bytes, Func<ValueTask> write, CancellationToken cancellationToken)
    {
        while (true)
        {
            try
            {
                await write().ConfigureAwait(false);
                return;
            }
            catch (IOException e) when (FullDisk.IsReasonOf(e))
            {
                if (!await _sweep.TryMakeRoomAsync(bytes, cancellationToken).ConfigureAwait(false))
                {
                    throw;
                }
            }
        }
    }

    private async ValueTask WriteInFolderAsync(
        string path, byte[] head, ReadOnlySequence<byte> body, DateTime expires, TimeSpan sliding, CancellationToken cancellationToken)
    {
        try
        {
            await WriteAsync(path, head, body, expires, sliding, cancellationToken).ConfigureAwait(false);
        }
        catch (DirectoryNotFoundException)
        {
            MakeFolder(Path.GetDirectoryName(path)!);
            await WriteAsync(path, head, body, expires, sliding, cancellationToken).ConfigureAwait(false);
        }
    }

    private async ValueTask WriteAsync(
        string path, byte[] head, ReadOnlySequence<byte> body, DateTime expires, TimeSpan sliding, CancellationToken cancellationToken)
    {
        FilePipeWriter writer = await FilePipeWriter.OpenAsync(path, s_writerOptions, cancellationToken).ConfigureAwait(false);
        await using (writer.ConfigureAwait(false))
        {
            await writer.WriteAsync(head, cancellationToken).ConfigureAwait(false);
            foreach (ReadOnlyMemory<byte> segment in body)
            {
                await writer.WriteAsync(segment, cancellationToken).ConfigureAwait(false);
            }

            await writer.FlushAsync(FlushGuarantee.Written, cancellationToken).ConfigureAwait(false);
            SetTimes(writer, head, body, expires, sliding);
            await writer.CompleteAsync().ConfigureAwait(false);
        }
    }

    private void Write(string path, byte[] head, ReadOnlySequence<byte> body, DateTime expires, TimeSpan sliding)
    {
        MakeFolder(Path.GetDirectoryName(path)!);
        using FilePipeWriter writer = FilePipeWriter.Create(path, s_writerOptions);
        writer.Write(head);
        foreach (ReadOnlyMemory<byte> segment in body)
        {
            writer.Write(segment.Span);
        }

        writer.FlushAsync(FlushGuarantee.Written).AsTask().GetAwaiter().GetResult();
        SetTimes(writer, head, body, expires, sliding);
        writer.Complete();
    }

    private bool Use<TState>(string path, SafeFileHandle handle, string key, ReadOnlySequence<byte> file, TState state,
        Action<TState, ReadOnlySequence<byte>> use)
    {
        FileCacheEntry? entry = FileCacheEntry.Parse(file);
        if (entry is null)
        {
            return RemoveDamaged(path, handle);
        }

        // Another key with the same hash has its place; the next one that is stored takes it.
        if (entry.Key != key)
        {
            _metrics.Miss();
            return false;
        }

        if (!IsCurrent(handle, entry))
        {
            _metrics.Evicted();
            _metrics.Miss();
            TryDelete(path, handle);
            return false;
        }

        _metrics.Hit();
        use(state, entry.Body);
        return true;
    }

    private bool RemoveDamaged(string path, SafeFileHandle handle)
    {
        _metrics.Damaged();
        _metrics.Miss();
        _logger.LogEntryDamaged(path);
        TryDelete(path, handle);
        return false;
    }

    // All by the handle: by now another entry may have the name, whose times are its own.
    private bool IsCurrent(SafeFileHandle handle, FileCacheEntry entry)
    {
        DateTime now = Time.GetUtcNow().UtcDateTime;
        if (entry.Expires <= now || (entry.Sliding > TimeSpan.Zero && FileTimes.WrittenOf(handle) <= now))
        {
            return false;
        }

        foreach ((string tag, long generation) in entry.Tags)
        {
            if (GenerationOf(tag) != generation)
            {
                return false;
            }
        }

        // The system notes the access itself where a volume is mounted that way.
        if (entry.Sliding > TimeSpan.Zero)
        {
            _ = TrySetTimes(handle, now, EndOf(entry.Expires, entry.Sliding, now));
        }
        else if (now - FileTimes.AccessedOf(handle) > s_accessExactness)
        {
            _ = TrySetTimes(handle, now, expires: null);
        }

        return true;
    }

    // Null: the entry is not stored, which is told once each time, and is no error of whoever stores it.
    private byte[]? MakeHead(
        string key, ReadOnlySequence<byte> body, ReadOnlySpan<string> tags, DateTime expires, TimeSpan sliding)
    {
        (string, long)[] generations = tags.IsEmpty ? [] : new (string, long)[tags.Length + 1];
        for (int i = 0; i < generations.Length; i++)
        {
            string tag = i == 0 ? Epoch : tags[i - 1];
            generations[i] = (tag, GenerationOf(tag));
        }

        byte[]? head = FileCacheEntry.MakeHead(key, generations, expires, sliding, body);
        if (head is null)
        {
            _logger.LogEntryNotStored(key.Length, tags.Length);
        }

        return head;
    }

    // Before the entry has its name: who finds it with another time may take it for one that has expired, and remove it.
    private void SetTimes(FilePipeWriter writer, byte[] head, ReadOnlySequence<byte> body, DateTime expires, TimeSpan sliding)
    {
        DateTime now = Time.GetUtcNow().UtcDateTime;
        DateTime end = EndOf(expires, sliding, now);
        if (!TrySetTimes(writer.Handle, now, end) && sliding > TimeSpan.Zero)
        {
            // Nothing but the time of the file tells the end of a sliding expiration: it becomes an absolute one.
            FileCacheEntry.SetExpiration(head, body, end);
            RandomAccess.Write(writer.Handle, head, 0);
        }
    }

    // A file system that has no later times stores its last one, or refuses.
    private static void SetEnd(SafeFileHandle handle, DateTime end)
    {
        try
        {
            System.IO.File.SetLastWriteTimeUtc(handle, end < s_latest ? end : s_latest);
        }
        catch (Exception exception) when (end > s_latestOfAll && exception is IOException or ArgumentOutOfRangeException)
        {
            System.IO.File.SetLastWriteTimeUtc(handle, s_latestOfAll);
        }
    }

    // A sliding expiration begins again with each access.
    private static DateTime EndOf(DateTime expires, TimeSpan sliding, DateTime now)
        => sliding > TimeSpan.Zero && sliding < expires - now ? now + sliding : expires;

    // 0 is that of a tag that was never removed.
    private long GenerationOf(string tag)
    {
        try
        {
            using SafeFileHandle handle = Open(TagPathOf(tag));
            Span<byte> generation = stackalloc byte[sizeof(long)];
            return RandomAccess.Read(handle, generation, 0) == sizeof(long) ? BinaryPrimitives.ReadInt64LittleEndian(generation) : -1;
        }
        catch (Exception exception) when (exception is FileNotFoundException or DirectoryNotFoundException)
        {
            return 0;
        }
    }

    // A name with nothing of the key in it: keys are made of what clients send.
    private string PathOf(string key)
    {
        string name = NameOf(key);
        return Path.Combine(_folder, name[..3], name);
    }

    private string TagPathOf(string tag) => Path.Combine(_tags, NameOf(tag));

    private static string NameOf(string text)
    {
        Span<byte> hash = stackalloc byte[SHA256.HashSizeInBytes];
        SHA256.HashData(MemoryMarshal.AsBytes(text.AsSpan()), hash);
        return Convert.ToHexStringLower(hash[..16]);
    }

    // Makes a folder in the root, and that first: otherwise it would have the rights that everything has.
    private void MakeFolder(string path)
    {
        PrivateFolder.MakeAndCheck(_folder, _allowsShared);
        PrivateFolder.Make(path);
    }

    // Windows sets the times by a handle that may write, and lets others replace or remove what is open only if that was agreed on.
    private static SafeFileHandle Open(string path)
        => SpareDescriptors.Open(path, static path => System.IO.File.OpenHandle(
            path, FileMode.Open, OperatingSystem.IsWindows() ? FileAccess.ReadWrite : FileAccess.Read,
            FileShare.ReadWrite | FileShare.Delete));

    // Where the times cannot be set (SMB, vfat, sandboxes), the entry is stored and read all the same.
    private static bool TrySetTimes(SafeFileHandle handle, DateTime accessed, DateTime? expires)
    {
        try
        {
            System.IO.File.SetLastAccessTimeUtc(handle, accessed);
            if (expires is { } last)
            {
                SetEnd(handle, last);
            }

            return true;
        }
        catch (Exception exception) when (exception is IOException or UnauthorizedAccessException or ArgumentOutOfRangeException)
        {
            return false;
        }
    }

    // For ever: a moment that today's file systems can store (ext4: to 2446), and one that every file system can (ext4 with inodes of 128
    // bytes: to 2038-01-19).
    private static readonly DateTime s_latest = new(2400, 1, 1, 0, 0, 0, DateTimeKind.Utc);
    private static readonly DateTime s_latestOfAll = new(2038, 1, 1, 0, 0, 0, DateTimeKind.Utc);

    // Not what was stored in its place meanwhile. (One that is stored between the two calls is lost, which is a miss.)
    private static void TryDelete(string path, SafeFileHandle handle)
    {
        using FilePipeReader entry = FilePipeReader.Create(handle, new FilePipeReaderOptions { LeaveOpen = true });
        if (FileIdentity.TryGet(path, out FileIdentity identity) && identity == entry.Identity)
        {
            _ = TryDelete(path);
        }
    }

    /// <summary>Whether the entry itself tells a later end than its time does, which could not be set then.</summary>
    internal static bool IsKeptByItself(string path, DateTime now)
    {
        try
        {
            using SafeFileHandle handle = Open(path);
            Span<byte> head = stackalloc byte[FileCacheEntry.FixedLength];
            return FileCacheEntry.IsKeptUntilAfter(head[..RandomAccess.Read(handle, head, 0)], now);
        }
        catch (Exception exception) when (exception is IOException or UnauthorizedAccessException)
        {
            return false;
        }
    }

    // Whoever asks or looks next finds it again, and may remove it then.
    internal static bool TryDelete(string path)
    {
        try
        {
            System.IO.File.Delete(path);
            return true;
        }
        catch (Exception exception) when (exception is IOException or UnauthorizedAccessException)
        {
            return false;
        }
    }
}
