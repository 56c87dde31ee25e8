namespace FilePipelines.Tests;

/// <summary>Files that behave unlike a file on a disk.</summary>
public sealed partial class OddFileTests : FileTests
{
    public OddFileTests() => ChildProcess.SkipUnlessLinux();

    [Fact]
    public void Create_DirectHandle_IsRefusedWithWhatToDo()
    {
        Assert.SkipUnless(RuntimeInformation.ProcessArchitecture == Architecture.X64, "x64 only: it names O_DIRECT by its number.");
        const int ReadWriteDirect = 0x4002;
        string path = _folder.File("f", Pattern.Bytes(4096));
        int descriptor = Open(path, ReadWriteDirect);
        Assert.SkipUnless(descriptor >= 0, "The temporary folder's file system has no O_DIRECT.");
        using SafeFileHandle handle = new(descriptor, ownsHandle: true);

        foreach (FilePipeBackend backend in new[] { FilePipeBackend.Auto, FilePipeBackend.Portable })
        {
            foreach (string message in new[]
            {
                Assert.Throws<NotSupportedException>(() => FilePipeReader.Create(handle, new() { Backend = backend })).Message,
                Assert.Throws<NotSupportedException>(() => FilePipeWriter.Create(handle, new() { Backend = backend })).Message,
            })
            {
                Assert.Contains(path, message, StringComparison.Ordinal);
                Assert.Contains("O_DIRECT", message, StringComparison.Ordinal);
                Assert.Contains(nameof(FileCaching.DropBehind), message, StringComparison.Ordinal);
            }
        }

        Assert.False(handle.IsClosed);
    }

    /// <summary>fallocate(2) reserves nothing on a block device, and ftruncate(2) answers EINVAL: there is nothing to free.</summary>
    [Theory]
    [InlineData(FilePipeBackend.Auto), InlineData(FilePipeBackend.Portable)]
    public async Task CompleteAsync_PreallocatedBlockDevice_FreesNothing(FilePipeBackend backend)
    {
        // The first kilobyte is for a boot loader: ext4 does not use it.
        using LoopDisk disk = LoopDisk.Make("ext4", 32 * 1024 * 1024);
        FilePipeWriter writer = FilePipeWriter.Create(disk.Device, new() { PreallocationSize = 4096, Backend = backend });
        await writer.WriteAllAsync(Pattern.Bytes(1000));

        byte[] written = new byte[1000];
        using FileStream device = File.OpenRead(disk.Device);
        device.ReadExactly(written);
        Assert.Equal(Pattern.Bytes(1000), written);
    }

    [Fact]
    public async Task Abort_TerminalThatNobodyReads_EndsEveryWait()
    {
        using SafeFileHandle masterEnd = OpenTerminal(out SafeFileHandle terminal);
        FilePipeWriter writer = FilePipeWriter.Create(terminal, new() { PauseWriterThreshold = 0 });
        ValueTask<FlushResult> flush = writer.WriteAsync(Pattern.Bytes(200_000), _stop);

        // By now no more goes in, and a call waits inside: where it does not yet, Abort has less to do.
        await Task.Delay(200, _stop);
        Assert.False(flush.IsCompleted);

        writer.Abort();
        await Assert.ThrowsAsync<OperationCanceledException>(async () => await flush);
        await writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
    }

    [Theory]
    [InlineData(0, false), InlineData(0, true), InlineData(1000, false), InlineData(1000, true)]
    public async Task CopyToAsync_TerminalIsEndedOnce_Ends(long readAhead, bool toStream)
    {
        using FileStream keyboard = new(OpenTerminal(out SafeFileHandle terminal), FileAccess.Write, bufferSize: 0);
        FilePipeReader reader = FilePipeReader.Create(terminal, new() { PauseReadAheadThreshold = readAhead });
        keyboard.Write("one\n"u8);
        ReadResult result = await reader.ReadAsync(_stop);
        reader.AdvanceTo(result.Buffer.End);
        keyboard.Write("two\n"u8);

        // With read-ahead the line and the end are both found by the time of the copy. Ctrl-D ends one read only.
        await Task.Delay(100, _stop);
        keyboard.WriteByte(4);
        await Task.Delay(100, _stop);
        MemoryStream copied = new();
        PipeWriter writer = PipeWriter.Create(copied);
        await (toStream ? reader.CopyToAsync(copied, _stop) : reader.CopyToAsync(writer, _stop)).WaitAsync(Eventually.Limit, _stop);
        Assert.Equal("two\n"u8, copied.ToArray());
        await writer.CompleteAsync();
        await reader.CompleteAsync();
    }

    /// <summary>Opens a terminal, and returns the end of whoever sits before it. Skips the test where there is none.</summary>
    private static SafeFileHandle OpenTerminal(out SafeFileHandle terminal)
    {
        const int ReadWriteNoControl = 0x102;
        Assert.SkipUnless(
            RuntimeInformation.ProcessArchitecture == Architecture.X64, "x64 only: it names ioctl(2) requests by their numbers.");
        int master = Open("/dev/ptmx", ReadWriteNoControl);
        Assert.SkipUnless(master >= 0, "No pseudo-terminals here.");

        // TIOCSPTLCK, TIOCGPTN
        int value = 0;
        Assert.Equal(0, Control(master, 0x4004_5431, ref value));
        Assert.Equal(0, Control(master, 0x8004_5430, ref value));
        terminal = new SafeFileHandle(Open($"/dev/pts/{value}", ReadWriteNoControl), ownsHandle: true);
        return new SafeFileHandle(master, ownsHandle: true);
    }

    [LibraryImport("libc", EntryPoint = "open", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int Open(string path, int flags);

    [LibraryImport("libc", EntryPoint = "ioctl", SetLastError = true)]
    private static partial int Control(int descriptor, ulong request, ref int value);
}
