using System.Formats.Tar;
using System.IO.Compression;

namespace FilePipelines.Tests;

/// <summary>Readers and streams of one open file, with what reads archives.</summary>
public sealed class SharedFileStreamTests : FileTests
{
    [Fact]
    public async Task ZipArchive_EntriesInParallel_ReadWhatWasPacked()
    {
        string path = _folder.File("zip");
        using (ZipArchive packed = ZipFile.Open(path, ZipArchiveMode.Create))
        {
            for (int i = 0; i < 8; i++)
            {
                using Stream entry = packed.CreateEntry($"{i}", CompressionLevel.Fastest).Open();
                entry.Write(Pattern.Bytes(100_000, i * 1_000_000L));
            }
        }

        using SharedFile file = SharedFile.Open(path);
        await Task.WhenAll(Enumerable.Range(0, 8).Select(i => Task.Run(
            async () =>
            {
                using ZipArchive archive = new(file.AsStream());
                using MemoryStream content = new();
                await using Stream entry = archive.GetEntry($"{i}")!.Open();
                await entry.CopyToAsync(content, _stop);
                Assert.Equal(100_000, content.Length);
                Assert.Equal(-1, Pattern.FirstDifference(content.ToArray(), i * 1_000_000L));
            },
            _stop)));
    }

    [Fact]
    public async Task TarReader_ReadsWhatWasPacked()
    {
        string path = _folder.File("tar");
        await using (TarWriter packed = new(File.Create(path)))
        {
            PaxTarEntry whole = new(TarEntryType.RegularFile, "a") { DataStream = new MemoryStream(Pattern.Bytes(70_000)) };
            await packed.WriteEntryAsync(whole, _stop);
        }

        using SharedFile file = SharedFile.Open(path);
        await using TarReader reader = new(file.AsStream());
        TarEntry entry = (await reader.GetNextEntryAsync(cancellationToken: _stop))!;
        byte[] content = new byte[70_000];
        await entry.DataStream!.ReadExactlyAsync(content, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(content));
        Assert.Null(await reader.GetNextEntryAsync(cancellationToken: _stop));
    }

    [Fact]
    public async Task Stream_SeeksAndReads_AndEndsAtTheLength()
    {
        using SharedFile file = SharedFile.Open(_folder.File("f", Pattern.Bytes(1000)));
        Stream stream = file.AsStream();
        Assert.Equal((1000, true, false), (stream.Length, stream.CanSeek, stream.CanWrite));
        Assert.Equal(990, stream.Seek(-10, SeekOrigin.End));
        byte[] bytes = new byte[100];
        Assert.Equal(10, await stream.ReadAsync(bytes, _stop));
        Assert.Equal(0, await stream.ReadAsync(bytes, _stop));
        Assert.Equal(0, stream.Read(bytes));
        stream.Position = 5;
        Assert.Equal(100, stream.Read(bytes));
        Assert.Equal(-1, Pattern.FirstDifference(bytes, 5));
        Assert.Equal(105, stream.Position);
        Assert.Equal(Pattern.At(105), stream.ReadByte());
        Assert.Throws<IOException>(() => stream.Seek(-1, SeekOrigin.Begin));
        Assert.Throws<NotSupportedException>(() => stream.Write(bytes));
        stream.Position = 2000;
        Assert.Equal(0, await stream.ReadAsync(bytes, _stop));
    }

    [Fact]
    public async Task OpenReader_ManyAtOnce_EachReadsItsPart()
    {
        using SharedFile file = SharedFile.Open(_folder.File("f", Pattern.Bytes(3_000_000)));
        await Task.WhenAll(Enumerable.Range(0, 8).Select(i => Task.Run(
            async () =>
            {
                FilePipeReader reader = file.OpenReader(i * 300_000, 400_000);
                using MemoryStream part = new();
                await reader.CopyToAsync(part, _stop);
                await reader.CompleteAsync();
                Assert.Equal(400_000, part.Length);
                Assert.Equal(-1, Pattern.FirstDifference(part.ToArray(), i * 300_000));
            },
            _stop)));
        Assert.Throws<ArgumentOutOfRangeException>(() => file.OpenReader(-1));
        file.Dispose();
        Assert.Throws<ObjectDisposedException>(() => file.OpenReader());
        Assert.Throws<ObjectDisposedException>(file.AsStream);
    }
}
