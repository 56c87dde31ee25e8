using Pipelines.File.Writing;

namespace FilePipelines.Tests;

/// <summary>Real file systems that lose bytes: the writer has to say so, and never to acknowledge them.</summary>
public sealed class LostByteTests
{
    private const int MiB = 1024 * 1024;

    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    /// <summary>A file system that is read-only after an error answers EROFS to every sync, and what it had not written is gone.</summary>
    [Theory]
    [InlineData(FilePipeBackend.Auto), InlineData(FilePipeBackend.Portable)]
    public async Task FlushAsync_DurableAfterTheFileSystemHasBecomeReadOnly_Throws(FilePipeBackend backend)
    {
        using LoopDisk disk = LoopDisk.Make("ext4", 32 * MiB, mountOptions: "errors=remount-ro");
        string path = disk.PathOf("journal");
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { FlushGuarantee = FlushGuarantee.Written, Backend = backend });
        await writer.WriteAsync("first\n"u8.ToArray(), _stop);
        await writer.FlushAsync(FlushGuarantee.Durable, _stop);
        await writer.WriteAsync(Pattern.Bytes(MiB), _stop);
        disk.TriggerError();

        IOException e = await Assert.ThrowsAsync<IOException>(async () => await writer.FlushAsync(FlushGuarantee.Durable, _stop));
        Assert.Contains(path, e.Message, StringComparison.Ordinal);
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.FlushAsync(_stop)));
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync()));
    }

    /// <summary>RandomAccess.FlushToDisk succeeds there.</summary>
    [Fact]
    public void Flush_AfterTheFileSystemHasBecomeReadOnly_Throws()
    {
        using LoopDisk disk = LoopDisk.Make("ext4", 32 * MiB, mountOptions: "errors=remount-ro");
        string path = disk.PathOf("state");
        using SafeFileHandle handle = File.OpenHandle(path, FileMode.Create, FileAccess.Write);
        RandomAccess.Write(handle, "first"u8, 0);
        FileSync.Flush(handle);
        RandomAccess.Write(handle, Pattern.Bytes(MiB), 0);
        disk.TriggerError();
        RandomAccess.FlushToDisk(handle);
        Assert.Contains(path, Assert.Throws<IOException>(() => FileSync.Flush(handle)).Message, StringComparison.Ordinal);
        Assert.Throws<IOException>(() => FileSync.FlushFolder(Path.GetDirectoryName(path)!));
    }

    /// <summary>btrfs logs nothing of a file without a name, and a power failure may leave the first name without content.</summary>
    [Theory]
    [InlineData(false, "Make Sync Link Sync SyncFolder")]
    [InlineData(true, "Make Sync Link Rename Sync SyncFolder")]
    public async Task CompleteAsync_DurableReplacementOnBtrfs_SyncsTheFileBehindItsFirstName(bool exists, string order)
    {
        using LoopDisk disk = LoopDisk.Make("btrfs", 128 * MiB);
        string path = disk.PathOf("f");
        if (exists)
        {
            File.WriteAllText(path, "old");
        }

        RecordedCalls calls = new();
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable }, calls);
        await writer.WriteAllAsync(Pattern.Bytes(10));
        Assert.Equal(order, calls.Order[^order.Length..]);
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(path));
    }

    /// <summary>
    /// Nobody has written to it for a while, so nobody knows whether it would hold the caller: not even the first one is held.
    /// </summary>
    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Written)]
    public async Task CompleteAsync_FrozenFileSystem_ReturnsAtOnce(FlushGuarantee guarantee)
    {
        using LoopDisk disk = LoopDisk.Make("ext4", 32 * MiB);
        FastWrites writes = StoppedClock.NoInlineWrites();
        FilePipeWriter[] writers = [.. Enumerable.Range(0, 4).Select(
            i => new ScriptedCalls { Inline = writes }.Write(disk.PathOf($"{i}"), new() { FlushGuarantee = guarantee }))];
        foreach (FilePipeWriter writer in writers)
        {
            writer.Put(100);
        }

        Task[] ends = [];
        disk.Freeze();
        try
        {
            await Task.Run(() => { ends = [.. writers.Select(End)]; }, _stop).WaitAsync(Eventually.Limit, _stop);
            Assert.DoesNotContain(ends, static end => end.IsCompleted);
        }
        finally
        {
            disk.Thaw();
        }

        await Task.WhenAll(ends).WaitAsync(Eventually.Limit, _stop);
        Assert.All(writers, (_, i) => Assert.Equal(Pattern.Bytes(100), File.ReadAllBytes(disk.PathOf($"{i}"))));

        async Task End(FilePipeWriter writer)
        {
            ValueTask<System.IO.Pipelines.FlushResult> flush = guarantee == FlushGuarantee.Written ? writer.FlushAsync(_stop) : default;
            await flush;
            await writer.CompleteAsync();
        }
    }

    /// <summary>
    /// A thin device that has no room for a while: sync_file_range(2) answers that bytes are lost, and no fdatasync(2) answers it again.
    /// </summary>
    [Fact]
    public async Task FlushAsync_DropBehindOnADeviceThatWasFull_Throws()
    {
        using LoopDisk disk = LoopDisk.Make("ext4", 64 * MiB, makeOptions: ["-q", "-O", "^has_journal"], roomBytes: 64 * MiB);
        string path = disk.PathOf("large");
        FilePipeWriter writer = FilePipeWriter.Create(path,
            new() { FlushGuarantee = FlushGuarantee.Written, Caching = FileCaching.DropBehind });
        await writer.WriteAsync("first"u8.ToArray(), _stop);
        await writer.FlushAsync(FlushGuarantee.Durable, _stop);
        DriveInfo room = new(disk.Image);

        // The kernel itself still writes to a new ext4, so what is left is asked for again and again.
        using (FileStream ballast = new(disk.Ballast, FileMode.CreateNew, FileAccess.Write, FileShare.Read, bufferSize: 0))
        {
            while (room.AvailableFreeSpace > 2 * MiB)
            {
                ballast.Write(new byte[64 * 1024]);
            }
        }

        // The first step of 8 MiB is being written when the second one begins; the third one waits for it.
        const int Piece = 32 * 1024;
        long offset = 5;
        for (; offset < (16 * MiB) - Piece; offset += Piece)
        {
            await writer.WriteAsync(Pattern.Bytes(Piece, offset), _stop);
        }

        disk.WaitUntilIdle();
        File.Delete(disk.Ballast);
        IOException e = await Assert.ThrowsAsync<IOException>(async () =>
        {
            await writer.WriteAsync(Pattern.Bytes(Piece, offset), _stop);
            await writer.WriteAsync(Pattern.Bytes(Piece, offset + Piece), _stop);
        });
        Assert.Contains(path, e.Message, StringComparison.Ordinal);
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.FlushAsync(FlushGuarantee.Durable, _stop)));
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync()));
    }
}
