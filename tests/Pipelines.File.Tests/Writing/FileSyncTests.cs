namespace FilePipelines.Tests;

public sealed class FileSyncTests : FileTests
{
    [Fact]
    public void Flush_FileAndFolder_AreOnTheDevice()
    {
        string path = _folder.File("f");
        using SafeFileHandle handle = File.OpenHandle(path, FileMode.Create, FileAccess.Write);
        RandomAccess.Write(handle, "bytes"u8, 0);
        FileSync.Flush(handle);
        FileSync.FlushFolder(_folder.Path);
        Assert.Equal(5, RandomAccess.GetLength(handle));
    }

    [Fact]
    public void Flush_HandleThatIsOpenForReadingOnly_FlushesWhatOthersHaveWritten()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "There the handle must be open for writing.");
        string path = _folder.File("f");
        File.WriteAllText(path, "bytes");
        using SafeFileHandle handle = File.OpenHandle(path);
        FileSync.Flush(handle);
        Assert.Equal(5, RandomAccess.GetLength(handle));
    }

    [Fact]
    public void Flush_ClosedHandle_Throws()
    {
        SafeFileHandle handle = File.OpenHandle(_folder.File("f"), FileMode.Create, FileAccess.Write);
        handle.Dispose();
        Assert.Throws<ObjectDisposedException>(() => FileSync.Flush(handle));
        Assert.Throws<ArgumentNullException>(() => FileSync.Flush(null!));
    }

    [Fact]
    public void FlushFolder_ThatIsNotThere_Throws()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Windows flushes no folders for ordinary users, so errors are ignored there.");
        string missing = _folder.File("missing");
        Assert.Contains(missing, Assert.ThrowsAny<IOException>(() => FileSync.FlushFolder(missing)).Message, StringComparison.Ordinal);
        Assert.Throws<ArgumentException>(() => FileSync.FlushFolder(""));
    }

    /// <summary>Opening a FIFO would wait for a writer.</summary>
    [Fact]
    public async Task FlushFolder_IsAFifo_ThrowsAtOnce()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Windows flushes no folders for ordinary users, and macOS is not tested.");
        string fifo = _folder.File("fifo");
        Fifo.MakeAt(fifo);
        Task flush = Task.Factory.StartNew(() => FileSync.FlushFolder(fifo), TestContext.Current.CancellationToken,
            TaskCreationOptions.LongRunning, TaskScheduler.Default);
        IOException error = await Assert.ThrowsAsync<IOException>(
            () => flush.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken));
        Assert.Contains(fifo, error.Message, StringComparison.Ordinal);
    }
}
