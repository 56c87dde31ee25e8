using System.IO.Pipelines;
using FilePipelinesChild;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelinesTests;

/// <summary>
/// A caller's handle with O_DIRECT (open(2)): RWF_NOWAIT waits for the device there, and memory, offsets and lengths have to be aligned.
/// </summary>
public sealed class DirectIoTests : IDisposable
{
    /// <summary>A multiple of every device's block.</summary>
    private const int Block = 4096;

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public DirectIoTests() => Assert.SkipUnless(OperatingSystem.IsLinux(), "O_DIRECT is a flag of Linux.");

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task ReadAsync_AlignedPool_ReadsTheFileAndTriesNothingOnTheCallersThread()
    {
        const int Length = 300 * Block;
        SafeFileHandle handle = OpenDirect(_folder.File("f", Pattern.Bytes(Length)));
        using AlignedPool pool = new();
        ScriptedCalls calls = new();
        FilePipeReader reader = calls.Read(handle, new() { BufferSize = Block, Pool = pool });
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(reader));
        Assert.Equal(0, calls.ReadsNoWait);
        Assert.True(calls.Reads > 1);
        Assert.True(handle.IsClosed);
    }

    [Fact]
    public async Task ReadAsync_AlignedPoolAndALengthThatIsNot_ReadsToTheEnd()
    {
        const int Length = (5 * Block) + 123;
        SafeFileHandle handle = OpenDirect(_folder.File("f", Pattern.Bytes(Length)));
        using AlignedPool pool = new();
        FilePipeReader reader = FilePipeReader.Create(handle, new() { BufferSize = Block, Pool = pool });
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(reader));
    }

    [Fact]
    public async Task ReadAsync_MemoryThatIsNotAligned_ThrowsWhatSaysSo()
    {
        SafeFileHandle handle = OpenDirect(_folder.File("f", Pattern.Bytes(10 * Block)));
        using AlignedPool pool = new() { Misalignment = 8 };
        FilePipeReader reader = FilePipeReader.Create(handle, new() { BufferSize = Block, Pool = pool });
        Exception? thrown = await Record.ExceptionAsync(async () => await reader.ReadAsync(_stop));
        Assert.Contains("O_DIRECT", Assert.IsType<ArgumentException>(thrown).Message, StringComparison.Ordinal);
        await reader.CompleteAsync();
        Assert.True(handle.IsClosed);
    }

    /// <summary>The memory of the destination need not be aligned, nor the bytes that are left be a block.</summary>
    [Theory]
    [InlineData(10 * Block, true)]
    [InlineData((10 * Block) + 123, true)]
    [InlineData((400 * Block) + 123, true)]
    [InlineData((10 * Block) + 123, false)]
    public async Task CopyToAsync_AlignedPool_CopiesWhatReadsRead(int length, bool toFile)
    {
        byte[] content = Pattern.Bytes(length);
        using AlignedPool pool = new();
        FilePipeReader reader = FilePipeReader.Create(OpenDirect(_folder.File("f", content)), new() { BufferSize = Block, Pool = pool });
        string path = _folder.File("destination");
        PipeWriter writer = toFile ? FilePipeWriter.Create(path) : PipeWriter.Create(File.Create(path));
        await reader.CopyToAsync(writer, _stop);
        Assert.Equal(length, reader.Position);
        await reader.CompleteAsync();
        await writer.CompleteAsync();
        Assert.Equal(content, File.ReadAllBytes(path));
    }

    [Fact]
    public async Task FlushAsync_AlignedPool_WritesTheFile()
    {
        const int Length = 20 * Block;
        string path = _folder.File("f", []);
        using AlignedPool pool = new();
        FilePipeWriter writer = FilePipeWriter.Create(
            OpenDirect(path, forWriting: true), new() { MinimumBufferSize = Block, Pool = pool, FlushGuarantee = FlushGuarantee.Written });
        for (int index = 0; index < Length; index += Block)
        {
            await writer.WriteAsync(Pattern.Bytes(Block, index), _stop);
        }

        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(Length), File.ReadAllBytes(path));
    }

    [Fact]
    public async Task FlushAsync_LengthThatIsNotAligned_WritesTheFile()
    {
        string path = _folder.File("f", []);
        using AlignedPool pool = new();
        FilePipeWriter writer = FilePipeWriter.Create(
            OpenDirect(path, forWriting: true), new() { MinimumBufferSize = Block, Pool = pool, FlushGuarantee = FlushGuarantee.Written });
        for (int index = 0; index < 20_000; index += 100)
        {
            await writer.WriteAsync(Pattern.Bytes(100, index), _stop);
        }

        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(20_000), File.ReadAllBytes(path));
    }

    /// <summary>Skips the test where the file system has no direct I/O.</summary>
    private static SafeFileHandle OpenDirect(string path, bool forWriting = false)
    {
        int descriptor = Libc.Open(path, (forWriting ? 1 : Libc.O_RDONLY) | Libc.O_CLOEXEC | Libc.O_DIRECT);
        Assert.SkipWhen(descriptor < 0, "This file system has no O_DIRECT.");
        return new SafeFileHandle(descriptor, ownsHandle: true);
    }
}
