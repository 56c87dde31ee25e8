using System.IO.Pipelines;
using FilePipelinesChild;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelinesTests;

/// <summary>
/// <see cref="FileCaching.Direct"/> where it is refused, which leaves the file as it was, and where a file is no longer as it was opened.
/// </summary>
public sealed class DirectRefusalTests : IDisposable
{
    private const int Length = 10_000;

    private readonly TempFolder _folder = new();

    public void Dispose() => _folder.Dispose();

    /// <summary>This back end has none on any system.</summary>
    [Theory]
    [InlineData(FileMode.Create, false)]
    [InlineData(FileMode.Truncate, false)]
    [InlineData(FileMode.Open, true)]
    [InlineData(FileMode.OpenOrCreate, true)]
    [InlineData(FileMode.CreateNew, false)]
    public void Create_BackendWithoutIt_LeavesTheFileAsItWas(FileMode mode, bool truncates)
    {
        bool isThere = mode != FileMode.CreateNew;
        string path = isThere ? _folder.File("f", Pattern.Bytes(Length)) : _folder.File("f");
        FilePipeWriterOptions options =
            new() { Caching = FileCaching.Direct, Backend = FilePipeBackend.Portable, Mode = mode, Truncate = truncates };
        Assert.Throws<PlatformNotSupportedException>(() => FilePipeWriter.Create(path, options));
        Assert.Equal(isThere, File.Exists(path));
        Assert.Equal(isThere ? Length : 0, isThere ? new FileInfo(path).Length : 0);
    }

    [Fact]
    public void Create_FileToBeCutWithoutDirectIo_LeavesItAsItWas()
    {
        Assert.SkipUnless(FileOpening.IsLinux, "Linux only.");
        string path = _folder.File("f", Pattern.Bytes(Length));
        OpenedFile file = new DirectScript { HasDirect = false }.Open(path, FileMode.Open, FileAccess.Write);
        FilePipeWriterOptions options = new() { Caching = FileCaching.Direct, Mode = FileMode.Open, Truncate = true };
        Assert.Throws<NotSupportedException>(() => FilePipeWriter.Create(file, options, leaveOpen: false, isOpenedByPath: true));
        Assert.Equal(Length, new FileInfo(path).Length);
        Assert.True(file.Handle.IsClosed);
    }

    /// <summary>A file that somebody else has put there while it was opened, and that holds bytes.</summary>
    [Fact]
    public void Create_FileThatOnlySeemsNew_IsNotDeleted()
    {
        Assert.SkipUnless(FileOpening.IsLinux, "Linux only.");
        string path = _folder.File("f", Pattern.Bytes(Length));
        OpenedFile file = new DirectScript { HasDirect = false }.Open(path, FileMode.OpenOrCreate, FileAccess.Write);
        file.IsNew = true;
        FilePipeWriterOptions options = new() { Caching = FileCaching.Direct, Mode = FileMode.OpenOrCreate };
        Assert.Throws<NotSupportedException>(() => FilePipeWriter.Create(file, options, leaveOpen: false, isOpenedByPath: true));
        Assert.Equal(Length, new FileInfo(path).Length);
    }

    [Theory]
    [InlineData(0)]
    [InlineData(5000)]
    [InlineData(8192)]
    public async Task WriteAsync_FileThatIsCut_MakesNoGapWhereSeveralWritesAreAllowed(int offset)
    {
        Assert.SkipUnless(FileOpening.IsLinux, "Linux only.");
        string path = _folder.File("f", Pattern.Bytes(8 << 20));
        using SafeFileHandle handle = File.OpenHandle(path, FileMode.Open, FileAccess.Write);
        int underWay = 0;
        int most = 0;
        DirectScript calls = new()
        {
            OnDirect = (_, _) =>
            {
                most = Math.Max(most, Interlocked.Increment(ref underWay));
                Thread.Sleep(5);
                Interlocked.Decrement(ref underWay);
                return null;
            },
        };
        FilePipeWriter writer = Direct.Open(() => calls.Write(
            handle, new()
            {
                Caching = FileCaching.Direct,
                Mode = FileMode.Open,
                Truncate = true,
                Offset = offset,
                WritesInFlight = 4,
                PauseWriterThreshold = 16 << 20,
            }));
        Assert.Equal(offset, new FileInfo(path).Length);
        await writer.WriteAsync(Pattern.Bytes(4 << 20, offset), TestContext.Current.CancellationToken);
        await writer.CompleteAsync();

        // What makes the file longer is written one after the other.
        Assert.Equal(1, most);
        Assert.Equal(offset + (4 << 20), await PatternFile.ReadToEndAsync(FilePipeReader.Create(path)));
    }

    /// <summary>
    /// A read at the end, which lies within a block, finds nothing, and the file grows before that is told: a later read has it.
    /// </summary>
    [Fact]
    public async Task ReadAsync_FileThatGrowsBehindARead_IsNoError()
    {
        Assert.SkipUnless(FileOpening.IsLinux, "Linux only.");
        string path = _folder.File("f", Pattern.Bytes(Length));
        GrowingCalls calls = new(path, Length);
        SafeFileHandle handle = File.OpenHandle(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite);
        UnixFile file = new(handle, path, FileProperties.Of(handle, path), calls);
        FilePipeReader reader = Direct.Open(() =>
            FilePipeReader.Create(file, new() { Caching = FileCaching.Direct, Offset = Length }, leaveOpen: false, isOpenedByPath: true));
        ReadResult result = await reader.ReadAsync(TestContext.Current.CancellationToken);
        Assert.True(result.IsCompleted && result.Buffer.IsEmpty);
        reader.AdvanceTo(result.Buffer.End);
        Assert.Equal(Length + 100, await PatternFile.ReadToEndAsync(reader, Length));
    }

    /// <summary>A part that ends within a block is copied, and what was read of it in front of an error comes first all the same.</summary>
    [Theory]
    [InlineData(1 << 20)]
    [InlineData((1 << 20) - 77)]
    public async Task ReadAsync_ErrorWithinAPart_ComesBehindTheBytesInFrontOfIt(int length)
    {
        Assert.SkipUnless(FileOpening.IsLinux, "Linux only.");
        const int Bad = DirectFile.BytesPerCall + (16 * 4096);
        string path = _folder.File("f", Pattern.Bytes(4 << 20));
        DirectScript calls =
            new() { OnDirect = (_, offset) => offset == DirectFile.BytesPerCall ? Bad - offset : offset == Bad ? -Libc.EIO : null };
        FilePipeReader reader = calls.Read(path, new() { Caching = FileCaching.Direct, Length = length });
        ReadResult result = await reader.ReadAtLeastAsync(Bad, TestContext.Current.CancellationToken);
        Assert.Equal(Bad, result.Buffer.Length);
        reader.AdvanceTo(result.Buffer.End);
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await reader.ReadAsync(TestContext.Current.CancellationToken));
        Assert.Equal(Libc.EIO, e.HResult);
        await reader.CompleteAsync();
    }

    /// <summary>The end is within a block nearly always.</summary>
    [Fact]
    public async Task ReadAsync_FollowedDirectHandle_IsWhatIsAppended()
    {
        Assert.SkipUnless(FileOpening.IsLinux, "Linux only.");
        string path = _folder.File("f", Pattern.Bytes(10));
        int descriptor = Libc.Open(path, Libc.O_RDONLY | Libc.O_CLOEXEC | Libc.O_DIRECT);
        Assert.SkipUnless(descriptor >= 0, "The file system has no direct I/O.");
        FilePipeReader reader = FilePipeReader.Create(
            new SafeFileHandle(descriptor, ownsHandle: true), new() { Follow = true, FollowInterval = TimeSpan.FromMilliseconds(5) });
        int[] pieces = [.. Enumerable.Range(1, 400).Select(static i => i % 50 == 0 ? 700_000 : (i * 37) % 5000)];
        Task writing = Task.Run(
            () =>
            {
                using FileStream stream = new(path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite, bufferSize: 0);
                foreach (int piece in pieces)
                {
                    stream.Write(Pattern.Bytes(piece, (int)stream.Length));
                }
            },
            TestContext.Current.CancellationToken);
        long index = 0;
        while (index < 10 + pieces.Sum())
        {
            ReadResult result = await reader.ReadAsync(TestContext.Current.CancellationToken);
            foreach (ReadOnlyMemory<byte> memory in result.Buffer)
            {
                Assert.Equal(-1, Pattern.FirstDifference(memory.Span, index));
                index += memory.Length;
            }

            reader.AdvanceTo(result.Buffer.End);
            Assert.False(result.IsCompleted);
        }

        await writing;
        await reader.CompleteAsync();
    }

    /// <summary>Behind the first read that comes to the end of the file somebody appends to it.</summary>
    private sealed unsafe class GrowingCalls(string path, int length) : UnixCalls
    {
        private bool _hasGrown;

        internal override long Read(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
        {
            long read = base.Read(file, vectors, count, offset, flags);
            if (!_hasGrown)
            {
                _hasGrown = true;
                using FileStream stream = new(path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite);
                stream.Write(Pattern.Bytes(100, length));
            }

            return read;
        }
    }
}
