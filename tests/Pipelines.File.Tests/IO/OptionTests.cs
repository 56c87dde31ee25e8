using System.Reflection;

namespace FilePipelines.Tests;

/// <summary>Options that contradict each other or the file, and what is said of them.</summary>
public sealed class OptionTests : FileTests
{
    [Fact]
    public void Create_HandleWithAnOptionForPaths_ThrowsAndLeavesTheHandleAlone()
    {
        using SafeFileHandle handle = File.OpenHandle(_folder.File("f", [1, 2, 3]), FileMode.Open, FileAccess.ReadWrite);
        foreach ((string name, FilePipeWriterOptions options) in new (string, FilePipeWriterOptions)[]
        {
            ("Mode", new() { Mode = FileMode.CreateNew }),
            ("Mode", new() { Mode = FileMode.Truncate }),
            ("Mode", new() { Mode = FileMode.Open }),
            ("Share", new() { Share = FileShare.None }),
            ("FileOptions", new() { FileOptions = FileOptions.WriteThrough }),
            ("PreallocationSize", new() { PreallocationSize = 1 }),
        })
        {
            ArgumentException e = Assert.Throws<ArgumentException>(() => FilePipeWriter.Create(handle, options));
            Assert.StartsWith($"{name} can be set only for a file that is opened by path", e.Message, StringComparison.Ordinal);
            Assert.Throws<ArgumentException>(() => FilePipeWriter.OpenStandardOutput(options));
        }

        foreach ((string name, FilePipeReaderOptions options) in new (string, FilePipeReaderOptions)[]
        {
            ("Share", new() { Share = FileShare.ReadWrite }),
            ("FileOptions", new() { FileOptions = FileOptions.SequentialScan }),
            ("WaitForFile", new() { WaitForFile = true, Follow = true, Share = FileShare.Read }),
        })
        {
            ArgumentException e = Assert.Throws<ArgumentException>(() => FilePipeReader.Create(handle, options));
            Assert.StartsWith($"{name} can be set only for a file that is opened by path", e.Message, StringComparison.Ordinal);
            Assert.Throws<ArgumentException>(() => FilePipeReader.OpenStandardInput(options));
        }

        Assert.False(handle.IsClosed);
        Assert.Equal(3, RandomAccess.GetLength(handle));
    }

    [Fact]
    public void Create_OffsetWithAModeThatEmptiesTheFile_ThrowsAndLeavesTheFileAlone()
    {
        string path = _folder.File("f", [1, 2, 3]);
        foreach (FileMode mode in new[] { FileMode.Create, FileMode.Truncate, FileMode.Append })
        {
            ArgumentException e = Assert.Throws<ArgumentException>(() => FilePipeWriter.Create(path, new() { Mode = mode, Offset = 1 }));
            Assert.Contains(mode.ToString(), e.Message, StringComparison.Ordinal);
            Assert.Equal([1, 2, 3], File.ReadAllBytes(path));
        }

        using SafeFileHandle handle = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite);
        Assert.Throws<ArgumentException>(() => FilePipeWriter.Create(handle, new() { Mode = FileMode.Append, Offset = 1 }));
        Assert.Throws<ArgumentException>(() => FilePipeWriter.OpenStandardOutput(new() { Offset = 0 }));
        Assert.Throws<ArgumentException>(() => FilePipeWriter.OpenStandardOutput(new() { Mode = FileMode.Append }));
        Assert.Throws<ArgumentException>(() => FilePipeReader.OpenStandardInput(new() { Offset = 1 }));
    }

    [Theory]
    [InlineData(FileMode.Open), InlineData(FileMode.OpenOrCreate), InlineData(FileMode.CreateNew)]
    public async Task Create_OffsetWithAModeThatKeepsOrMakesTheFile_WritesThere(FileMode mode)
    {
        string path = mode == FileMode.CreateNew ? _folder.File("f") : _folder.File("f", [1, 2, 3, 4]);
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { Mode = mode, Offset = 2 });
        await writer.WriteAsync(new byte[] { 9 }, TestContext.Current.CancellationToken);
        await writer.CompleteAsync();
        Assert.Equal(mode == FileMode.CreateNew ? [0, 0, 9] : [1, 2, 9, 4], File.ReadAllBytes(path));
    }

    [Fact]
    public async Task Create_ValueThatIsWrongByItself_ThrowsAndLeavesTheFileAlone()
    {
        string path = _folder.File("f", [1, 2, 3]);
        foreach ((string name, FilePipeReaderOptions options) in new (string, FilePipeReaderOptions)[]
        {
            ("BufferSize", new() { BufferSize = 0 }),
            ("BufferSize", new() { BufferSize = int.MaxValue }),
            ("Offset", new() { Offset = -1 }),
            ("Length", new() { Length = -1 }),
            ("PauseReadAheadThreshold", new() { PauseReadAheadThreshold = -1 }),
            ("ResumeReadAheadThreshold", new() { ResumeReadAheadThreshold = -1 }),
            ("FollowInterval", new() { FollowInterval = TimeSpan.Zero }),
            ("Share", new() { Share = (FileShare)64 }),
            ("FileOptions", new() { FileOptions = (FileOptions)1 }),
            ("Caching", new() { Caching = (FileCaching)99 }),
            ("Backend", new() { Backend = (FilePipeBackend)99 }),
        })
        {
            Assert.Throws<ArgumentOutOfRangeException>(name, () => FilePipeReader.Create(path, options));
            await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
                name, async () => await FilePipeReader.OpenAsync(path, options, TestContext.Current.CancellationToken));
        }

        Assert.Throws<ArgumentOutOfRangeException>(() => FilePipeReader.Create(path, new() { Length = long.MaxValue, Offset = 1 }));
        if (!OperatingSystem.IsWindows())
        {
            Assert.Contains("Overlapped", Assert.Throws<PlatformNotSupportedException>(
                () => FilePipeReader.Create(path, new() { Backend = FilePipeBackend.Overlapped })).Message, StringComparison.Ordinal);
        }

        foreach ((string name, FilePipeWriterOptions options) in new (string, FilePipeWriterOptions)[]
        {
            ("Mode", new() { Mode = 0 }),
            ("Share", new() { Share = (FileShare)64 }),
            ("FileOptions", new() { FileOptions = (FileOptions)1 }),
            ("PreallocationSize", new() { PreallocationSize = -1 }),
            ("Offset", new() { Offset = -1 }),
            ("MinimumBufferSize", new() { MinimumBufferSize = 0 }),
            ("PauseWriterThreshold", new() { PauseWriterThreshold = -1 }),
            ("ResumeWriterThreshold", new() { ResumeWriterThreshold = -1 }),
            ("FlushGuarantee", new() { FlushGuarantee = (FlushGuarantee)3 }),
            ("Caching", new() { Caching = (FileCaching)99 }),
            ("Backend", new() { Backend = (FilePipeBackend)99 }),
        })
        {
            Assert.Throws<ArgumentOutOfRangeException>(name, () => FilePipeWriter.Create(path, options));
            await Assert.ThrowsAsync<ArgumentOutOfRangeException>(
                name, async () => await FilePipeWriter.OpenAsync(path, options, TestContext.Current.CancellationToken));
        }

        // None of them has left the file open.
        await Eventually.FreeAsync(path);
        Assert.Equal([1, 2, 3], await File.ReadAllBytesAsync(path, TestContext.Current.CancellationToken));
    }

    [Fact]
    public void With_AnotherPart_KeepsEverythingElse()
    {
        FilePipeReaderOptions options = new() { Follow = true, BufferSize = 1000, Pool = MemoryPool<byte>.Shared, Offset = 1 };
        FilePipeReaderOptions part = options.With(7, 0);
        Assert.Equal((7L, (long?)0L, 1L, (long?)null), (part.Offset, part.Length, options.Offset, options.Length));
        foreach (PropertyInfo property in typeof(FilePipeReaderOptions).GetProperties().Where(p => p.Name is not ("Offset" or "Length")))
        {
            Assert.Equal(property.GetValue(options), property.GetValue(part));
        }
    }

    [Fact]
    public void Create_ThresholdsThatDoNotGoTogether_ThrowsAndSaysWhy()
    {
        string path = _folder.File("f", [1]);
        ArgumentOutOfRangeException e =
            Assert.Throws<ArgumentOutOfRangeException>(() => FilePipeReader.Create(path, new() { ResumeReadAheadThreshold = 20 }));
        Assert.Equal(("ResumeReadAheadThreshold", (object)20L), (e.ParamName, e.ActualValue));
        Assert.StartsWith("PauseReadAheadThreshold is not set", e.Message, StringComparison.Ordinal);
        e = Assert.Throws<ArgumentOutOfRangeException>(
            () => FilePipeReader.Create(path, new() { PauseReadAheadThreshold = 10, ResumeReadAheadThreshold = 20 }));
        Assert.Contains("PauseReadAheadThreshold (10 bytes)", e.Message, StringComparison.Ordinal);
        e = Assert.Throws<ArgumentOutOfRangeException>(
            () => FilePipeWriter.Create(path, new() { PauseWriterThreshold = 10, ResumeWriterThreshold = 20 }));
        Assert.Equal("ResumeWriterThreshold", e.ParamName);
        Assert.Contains("PauseWriterThreshold (10)", e.Message, StringComparison.Ordinal);
        Assert.Equal([1], File.ReadAllBytes(path));
    }

    [Fact]
    public async Task Length_OfAFile_IsWhatItHadWhenItWasOpened()
    {
        string path = _folder.File("f", new byte[100]);
        await using FilePipeReader reader = FilePipeReader.Create(path, new() { Offset = 10, Length = 5, Share = FileShare.ReadWrite });
        await File.AppendAllTextAsync(path, "more", TestContext.Current.CancellationToken);
        Assert.Equal(100, reader.Length);
        await reader.CompleteAsync();
        Assert.Equal(100, reader.Length);
        await using FilePipeReader empty = FilePipeReader.Create(_folder.File("empty", []));
        Assert.Equal(0, empty.Length);
        using SafeFileHandle handle = File.OpenHandle(path);
        await using FilePipeReader ofHandle = FilePipeReader.Create(handle);
        Assert.Equal(104, ofHandle.Length);
    }

    [Fact]
    public async Task Length_OfWhatHasNone_IsNull()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It opens files of Linux.");
        foreach (string path in new[] { "/proc/self/status", "/proc/sys/kernel/ostype", "/sys/kernel/mm/transparent_hugepage/enabled",
            "/dev/zero", "/dev/null" })
        {
            if (File.Exists(path))
            {
                await using FilePipeReader reader = FilePipeReader.Create(path);
                Assert.Null(reader.Length);
            }
        }

        using Fifo fifo = Fifo.Create(_folder);
        await using FilePipeReader ofFifo = FilePipeReader.Create(fifo.Path);
        Assert.Null(ofFifo.Length);
    }
}
