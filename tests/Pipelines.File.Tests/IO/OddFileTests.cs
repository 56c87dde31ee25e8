using System.IO.Pipelines;
using System.Runtime.InteropServices;
using FilePipelinesChild;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace FilePipelinesTests;

/// <summary>Files that behave unlike a file on a disk.</summary>
public sealed partial class OddFileTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public OddFileTests() => ChildProcess.SkipUnlessLinux();

    public void Dispose() => _folder.Dispose();

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

    [Fact]
    public async Task Abort_TerminalThatNobodyReads_EndsEveryWait()
    {
        const int ReadWriteNoControl = 0x102;
        Assert.SkipUnless(
            RuntimeInformation.ProcessArchitecture == Architecture.X64, "x64 only: it names ioctl(2) requests by their numbers.");
        int master = Open("/dev/ptmx", ReadWriteNoControl);
        Assert.SkipUnless(master >= 0, "No pseudo-terminals here.");
        using SafeFileHandle masterEnd = new(master, ownsHandle: true);

        // TIOCSPTLCK, TIOCGPTN
        int value = 0;
        Assert.Equal(0, Control(master, 0x4004_5431, ref value));
        Assert.Equal(0, Control(master, 0x8004_5430, ref value));
        SafeFileHandle terminal = new(Open($"/dev/pts/{value}", ReadWriteNoControl), ownsHandle: true);
        FilePipeWriter writer = FilePipeWriter.Create(terminal, new() { PauseWriterThreshold = 0 });
        ValueTask<FlushResult> flush = writer.WriteAsync(Pattern.Bytes(200_000), _stop);

        // By now no more goes in, and a call waits inside: where it does not yet, Abort has less to do.
        await Task.Delay(200, _stop);
        Assert.False(flush.IsCompleted);

        writer.Abort();
        await Assert.ThrowsAsync<OperationCanceledException>(async () => await flush);
        await writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
    }

    [LibraryImport("libc", EntryPoint = "open", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int Open(string path, int flags);

    [LibraryImport("libc", EntryPoint = "ioctl", SetLastError = true)]
    private static partial int Control(int descriptor, ulong request, ref int value);
}
