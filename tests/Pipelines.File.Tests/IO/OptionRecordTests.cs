using System.Buffers;
using Pipelines.File;

namespace FilePipelinesTests;

/// <summary>
/// Options that are made from others: <c>with</c> changes what it names and keeps the rest, what only the library sets included.
/// </summary>
public sealed class OptionRecordTests
{
    [Fact]
    public void ReaderOptions_With_KeepsEverythingElse()
    {
        FilePipeReaderOptions follow = new() { Follow = true, BufferSize = 1000, Pool = MemoryPool<byte>.Shared };
        FilePipeReaderOptions changed = follow with { Offset = 7, Length = 0 };
        Assert.Equal((true, 1000, 7L, (long?)0L, MemoryPool<byte>.Shared),
            (changed.Follow, changed.BufferSize, changed.Offset, changed.Length, changed.Pool));
        Assert.Null(follow.Length);
        Assert.Equal(FileShare.ReadWrite | FileShare.Delete, changed.Share);
        Assert.Equal(FileShare.Read, (changed with { Follow = false }).Share);
        Assert.Equal(follow, changed with { Offset = 0, Length = null });
        Assert.NotEqual(follow, changed);
        Assert.Equal(follow.GetHashCode(), (follow with { }).GetHashCode());
        Assert.Contains("BufferSize = 1000", follow.ToString(), StringComparison.Ordinal);
    }

    [Fact]
    public void WriterOptions_With_KeepsEverythingElse()
    {
        FilePipeWriterOptions replace = new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable, ReplacesLinks = true };
        FilePipeWriterOptions changed = replace with { PreallocationSize = 100 };
        Assert.Equal((true, FlushGuarantee.Durable, true, 100L),
            (changed.Replace, changed.FlushGuarantee, changed.ReplacesLinks, changed.PreallocationSize));
        Assert.Equal(new FilePipeWriterOptions(), new FilePipeWriterOptions());
        Assert.NotEqual(replace, replace with { ReplacesLinks = false });
        Assert.DoesNotContain("ReplacesLinks", replace.ToString(), StringComparison.Ordinal);
    }
}
