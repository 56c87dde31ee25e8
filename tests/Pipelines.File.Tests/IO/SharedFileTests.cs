namespace FilePipelines.Tests;

/// <summary>One open file that many callers read at once.</summary>
public sealed class SharedFileTests : FileTests
{
    [Fact]
    public async Task ReadAsync_ManyCallersAtOnce_EachGetsItsRange()
    {
        byte[] content = Pattern.Bytes(1_000_003);
        using SharedFile file = SharedFile.Open(_folder.File("f", content));
        Assert.Equal(content.Length, file.Length);
        await Task.WhenAll(Enumerable.Range(0, 16).Select(i => Task.Run(
            async () =>
            {
                using MemoryStream sent = new();
                PipeWriter writer = PipeWriter.Create(sent, new StreamPipeWriterOptions(leaveOpen: true));
                int begin = i * 60_001;
                for (int at = begin; await file.ReadAsync(writer, at, 10_000 + i) is > 0 and int read; at += read)
                {
                    await writer.FlushAsync(_stop);
                }

                await writer.CompleteAsync();
                Assert.Equal(content[begin..], sent.ToArray());
            },
            _stop)));
    }

    [Fact]
    public async Task ReadAsync_WrongArguments_Throws()
    {
        SharedFile file = SharedFile.Open(_folder.File("f", [1, 2, 3]));
        PipeWriter writer = new Pipe().Writer;
        await Assert.ThrowsAsync<ArgumentNullException>(async () => await file.ReadAsync(null!, 0, 1));
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(async () => await file.ReadAsync(writer, -1, 1));
        await Assert.ThrowsAsync<ArgumentOutOfRangeException>(async () => await file.ReadAsync(writer, 0, 0));
        Assert.Equal(3, await file.ReadAsync(writer, 0, 10));
        Assert.Equal(0, await file.ReadAsync(writer, 3, 10));
        file.Dispose();
        file.Dispose();
        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await file.ReadAsync(writer, 0, 1));
        Assert.True(file.Handle.IsClosed);
    }

    [Fact]
    public void Open_NotARegularFile_Throws()
    {
        Assert.Throws<ArgumentException>(() => SharedFile.Open(""));
        Assert.Throws<FileNotFoundException>(() => SharedFile.Open(_folder.File("missing")));
        Assert.Throws<UnauthorizedAccessException>(() => SharedFile.Open(_folder.Path));
        Assert.SkipUnless(OperatingSystem.IsLinux(), "FIFOs, and files of /proc.");
        Assert.Throws<NotSupportedException>(() => SharedFile.Open("/proc/self/status"));
        Assert.Throws<NotSupportedException>(() => SharedFile.Open("/dev/null"));

        // Opening it would wait for ever.
        Assert.Throws<NotSupportedException>(() => SharedFile.Open(Fifo.Make(_folder)));
    }

    [Fact]
    public async Task IsCurrent_FileChanges_IsFalse()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Only there the system tells.");
        string path = _folder.File("f", [1, 2, 3]);
        using SharedFile file = SharedFile.Open(path);
        using SharedFile same = SharedFile.Open(path);
        Assert.True(file.IsCurrent());
        Assert.True(file.IsSameVersionAs(same));
        await File.AppendAllTextAsync(path, "more", _stop);
        Assert.False(file.IsCurrent());
        using SharedFile longer = SharedFile.Open(path);
        Assert.True(longer.IsCurrent());
        Assert.False(longer.IsSameVersionAs(file));
        File.Move(path, path + "2");
        Assert.False(longer.IsCurrent());
    }

    [Fact]
    public void Dispose_TheCallerHasClosedTheHandle_DoesNotThrow()
    {
        SharedFile file = SharedFile.Open(_folder.File("f", [1, 2, 3]));
        file.Handle.Dispose();
        file.Dispose();
    }

    [Fact]
    public async Task Dispose_DeletedFile_IsClosedSoon()
    {
        string path = _folder.File("f", [1, 2, 3]);
        SharedFile file = SharedFile.Open(path);
        File.Delete(path);
        file.Dispose();
        await Eventually.TrueAsync(() => file.Handle.IsClosed);
    }
}
