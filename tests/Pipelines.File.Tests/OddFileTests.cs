using System.Buffers;
using System.Runtime.InteropServices;
using FilePipelinesChild;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace FilePipelinesTests;

/// <summary>Files that behave unlike a file on a disk.</summary>
public sealed partial class OddFileTests : IDisposable
{
    private readonly TempFolder _folder = new();

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

    [LibraryImport("libc", EntryPoint = "open", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int Open(string path, int flags);

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
