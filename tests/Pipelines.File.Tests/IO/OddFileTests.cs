using System.Buffers;
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

    [Theory]
    [InlineData(4096)]
    [InlineData(100_000)]
    [InlineData(300_001)]
    [InlineData(1)]
    public async Task Read_DirectHandleAndAlignedMemory_ReadsAFileOfAnyLength(int length)
    {
        Assert.SkipUnless(RuntimeInformation.ProcessArchitecture == Architecture.X64, "x64 only: it names O_DIRECT by its number.");
        int descriptor = Open(_folder.File("f", Pattern.Bytes(length)), 0x4000);
        Assert.SkipUnless(descriptor >= 0, "The temporary folder's file system has no O_DIRECT.");
        using AlignedPool pool = new();
        FilePipeReader reader = FilePipeReader.Create(new SafeFileHandle(descriptor, ownsHandle: true), new() { Pool = pool });
        Assert.Equal(length, await PatternFile.ReadToEndAsync(reader));
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

    private sealed class AlignedPool : MemoryPool<byte>
    {
        public override int MaxBufferSize => 1 << 20;

        public override IMemoryOwner<byte> Rent(int minBufferSize = -1) => new Owner(Math.Max(4096, (minBufferSize + 4095) / 4096 * 4096));

        protected override void Dispose(bool disposing)
        {
        }

        private sealed unsafe class Owner(int size) : MemoryManager<byte>
        {
            private readonly byte* _memory = (byte*)NativeMemory.AlignedAlloc((nuint)size, 4096);

            public override Span<byte> GetSpan() => new(_memory, size);

            public override MemoryHandle Pin(int elementIndex = 0) => new(_memory + elementIndex, default, this);

            public override void Unpin()
            {
            }

            protected override void Dispose(bool disposing) => NativeMemory.AlignedFree(_memory);
        }
    }
}
