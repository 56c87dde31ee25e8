using System.Collections.Concurrent;
using System.IO.Pipelines;
using System.Runtime.Versioning;
using FilePipelinesChild;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelinesTests;

/// <summary>
/// <see cref="FileCaching.Direct"/> on Windows: which call goes to which of the two handles. <see cref="DirectFuzzTests"/> has the bytes.
/// </summary>
[SupportedOSPlatform("windows")]
public sealed class DirectWindowsTests : IDisposable
{
    private const int Block = DirectFile.LeastBlock;
    private const int MiB = 1024 * 1024;

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public DirectWindowsTests() => Assert.SkipUnless(OperatingSystem.IsWindows(), "Windows only.");

    public void Dispose() => _folder.Dispose();

    [Theory]
    [InlineData(0, 5 * MiB)]
    [InlineData(77, (3 * MiB) + 5)]
    [InlineData(Block, 10)]
    public async Task ReadAsync_AnyOffsetAndLength_AsksTheUnbufferedHandleForWholeBlocks(int offset, int length)
    {
        Calls calls = new();
        FilePipeReader reader = FilePipeReader.Create(
            calls.Open(_folder.File("f", Pattern.Bytes(offset + length)), FileMode.Open, FileAccess.Read),
            new() { Caching = FileCaching.Direct, Offset = offset },
            leaveOpen: false,
            isOpenedByPath: true);
        Assert.Equal(offset + length, await PatternFile.ReadToEndAsync(reader, offset));
        Assert.NotEmpty(calls.Made);
        Assert.All(calls.Made, static call => Assert.True(call.IsDirect && call.IsWhole));
        Assert.True(calls.Direct!.IsClosed);
    }

    /// <summary>After every flush the file is as long as what was flushed.</summary>
    [Theory]
    [InlineData(100)]
    [InlineData(Block)]
    [InlineData((3 * Block) + 1)]
    [InlineData(MiB)]
    public async Task FlushAsync_AnyPieces_PadsNothing(int piece)
    {
        Calls calls = new();
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(
            calls.Open(path, FileMode.Create, FileAccess.Write),
            new() { Caching = FileCaching.Direct, FlushGuarantee = FlushGuarantee.Written },
            leaveOpen: false,
            isOpenedByPath: true);
        for (int i = 0; i < 10; i++)
        {
            _ = await writer.WriteAsync(Pattern.Bytes(piece, i * piece), _stop);
            Assert.Equal((i + 1L) * piece, new FileInfo(path).Length);
        }

        await writer.CompleteAsync();
        Assert.Equal(-1, Pattern.FirstDifference(await File.ReadAllBytesAsync(path, _stop), 0));
        Assert.All(calls.Made, static call => Assert.True(!call.IsDirect || call.IsWhole));
        Assert.Equal(piece >= Block, calls.Made.Any(static call => call.IsDirect));
        Assert.Equal(piece % Block != 0, calls.Made.Any(static call => !call.IsDirect));
        Assert.True(calls.Direct!.IsClosed);
    }

    [Fact]
    public void Create_FileSystemWithoutIt_LeavesNothing()
    {
        Calls calls = new() { OpenError = Kernel32.ERROR_INVALID_PARAMETER };
        string path = _folder.File("f", [1]);
        OpenedFile file = calls.Open(path, FileMode.Open, FileAccess.Read);
        Assert.Throws<NotSupportedException>(
            () => FilePipeReader.Create(file, new() { Caching = FileCaching.Direct }, leaveOpen: false, isOpenedByPath: true));
        Assert.True(file.Handle.IsClosed);
    }

    /// <summary>The error comes behind the bytes in front of it, with the path.</summary>
    [Fact]
    public async Task ReadAsync_ErrorInTheMiddle_ComesBehindTheBytesInFrontOfIt()
    {
        const int Bad = 2 * DirectFile.BytesPerCall;
        Calls calls = new() { OnRead = static offset => offset == Bad ? Kernel32.ERROR_IO_DEVICE : 0 };
        string path = _folder.File("f", Pattern.Bytes(4 * MiB));
        FilePipeReader reader = FilePipeReader.Create(
            calls.Open(path, FileMode.Open, FileAccess.Read),
            new() { Caching = FileCaching.Direct }, leaveOpen: false, isOpenedByPath: true);
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await PatternFile.ReadToEndAsync(reader));
        Assert.Contains(path, e.Message, StringComparison.Ordinal);
        Assert.Equal(Bad, reader.Position);
        await reader.CompleteAsync();
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task WriteAndRead_ByPath_IsTheFile(bool replaces)
    {
        string path = _folder.File("f");
        await using (FilePipeWriter writer = FilePipeWriter.Create(
            path, new() { Caching = FileCaching.Direct, Replace = replaces, Share = FileShare.None }))
        {
            _ = await writer.WriteAsync(Pattern.Bytes((2 * MiB) + 7), _stop);
            await writer.CompleteAsync();
        }

        FilePipeReader reader = FilePipeReader.Create(path, new() { Caching = FileCaching.Direct, Share = FileShare.None });
        Assert.Equal((2 * MiB) + 7, await PatternFile.ReadToEndAsync(reader));
        File.Delete(path);
    }

    private sealed unsafe class Calls : WindowsCalls
    {
        public int OpenError { get; init; }

        /// <summary>A Win32 error for a read at an offset, or 0 to make it.</summary>
        public Func<long, int>? OnRead { get; init; }

        public SafeFileHandle? Direct { get; private set; }

        public ConcurrentQueue<(bool IsDirect, bool IsWhole)> Made { get; } = new();

        public OverlappedFile Open(string path, FileMode mode, FileAccess access)
        {
            SafeFileHandle handle = File.OpenHandle(path, mode, access, FileShare.ReadWrite, FileOptions.Asynchronous);
            return new OverlappedFile(handle, path, FileProperties.Of(handle, path), this);
        }

        internal override int OpenUnbuffered(SafeFileHandle file, bool isWriter, out SafeFileHandle unbuffered)
        {
            if (OpenError != 0)
            {
                unbuffered = new SafeFileHandle();
                return OpenError;
            }

            int error = base.OpenUnbuffered(file, isWriter, out unbuffered);
            Direct = unbuffered;
            return error;
        }

        internal override int Read(SafeFileHandle file, nint buffer, uint count, NativeOverlapped* overlapped)
        {
            Add(file, buffer, count, overlapped);
            return OnRead?.Invoke(OffsetOf(overlapped)) is int error and not 0 ? error : base.Read(file, buffer, count, overlapped);
        }

        internal override int Write(SafeFileHandle file, nint buffer, uint count, NativeOverlapped* overlapped)
        {
            Add(file, buffer, count, overlapped);
            return base.Write(file, buffer, count, overlapped);
        }

        private static long OffsetOf(NativeOverlapped* overlapped) => (uint)overlapped->OffsetLow | ((long)overlapped->OffsetHigh << 32);

        private void Add(SafeFileHandle file, nint buffer, uint count, NativeOverlapped* overlapped)
            => Made.Enqueue((file == Direct, ((buffer | (nint)count | (nint)OffsetOf(overlapped)) & (Block - 1)) == 0));
    }
}
