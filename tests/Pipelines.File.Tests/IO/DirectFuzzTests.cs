using System.Buffers;
using System.IO.Pipelines;
using FilePipelinesChild;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace FilePipelinesTests;

/// <summary>
/// <see cref="FileCaching.Direct"/>: any request at any offset, against the bytes that are expected. A failure names the seed.
/// </summary>
[Trait("Category", FuzzTime.Category)]
public sealed class DirectFuzzTests : IDisposable
{
    private const int Block = 4096;
    private const int Most = 5 * 1024 * 1024;

    private static readonly int[] s_buffers = [1, 100, 511, 512, 4096, 5000, 65_536, 100_000, 1 << 20];

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    [Fact]
    public Task Read_AnyOffsetLengthBufferAndWay_IsTheFile() => RepeatAsync(ReadAsync);

    [Fact]
    public Task Write_AnyOffsetPieceFlushAndEnd_IsWhatWasWritten() => RepeatAsync(WriteAsync);

    private static Task RepeatAsync(Func<Random, Task> body) => FuzzTime.RunAsync(seed => body(new Random(seed)), times: 20);

    /// <summary>A length near a multiple of a block, of a call, or of nothing.</summary>
    private static int Length(Random random)
        => random.Next(4) switch
        {
            0 => random.Next(3 * Block),
            1 => Math.Max(0, (random.Next(Most / Block) * Block) + random.Next(-2, 3)),
            2 => Math.Max(0, (random.Next(Most / (512 * 1024)) * 512 * 1024) + random.Next(-2, 3)),
            _ => random.Next(Most),
        };

    private async Task ReadAsync(Random random)
    {
        int length = Length(random);
        string path = _folder.File("read", Pattern.Bytes(length));
        int offset = random.Next(3) == 0 ? 0 : random.Next(2) == 0 ? Length(random) : random.Next(length + 1);
        int? limit = random.Next(2) == 0 ? null : Length(random);
        using AlignedPool pool = new();
        FilePipeReaderOptions options = new()
        {
            Caching = FileCaching.Direct,
            Pool = random.Next(4) == 0 ? pool : null,
            Offset = offset,
            Length = limit,
            BufferSize = s_buffers[random.Next(s_buffers.Length)],
            ReadsInFlight = random.Next(6),
            PauseReadAheadThreshold = random.Next(3) == 0 ? random.Next(1, Most) : 0,
        };
        int expected = Math.Max(0, Math.Min(length - offset, limit ?? int.MaxValue));
        SafeFileHandle? handle = random.Next(4) == 0 && !OperatingSystem.IsWindows() ? File.OpenHandle(path) : null;
        FilePipeReader reader =
            Direct.Open(() => handle is null ? FilePipeReader.Create(path, options) : FilePipeReader.Create(handle, options));
        int read = random.Next(4) switch
        {
            0 => await ReadByAdvancingAsync(reader, random, offset),
            1 => await CopyAsync(reader, random, offset, toFile: random.Next(2) == 0),
            2 => await ReadStreamAsync(reader, random, offset),
            _ => (int)(await PatternFile.ReadToEndAsync(reader, offset) - offset),
        };
        Assert.Equal(expected, read);
        Assert.True(handle is null || handle.IsClosed);
        Assert.Equal(0, pool.Rented);
    }

    private async Task<int> ReadByAdvancingAsync(FilePipeReader reader, Random random, int index)
    {
        int start = index;
        while (true)
        {
            ReadResult result;
            if (random.Next(8) == 0)
            {
                reader.CancelPendingRead();
            }

            if (random.Next(4) != 0 || !reader.TryRead(out result))
            {
                result = random.Next(3) == 0 ? await reader.ReadAtLeastAsync(random.Next(100_000), _stop) : await reader.ReadAsync(_stop);
            }

            int at = index;
            foreach (ReadOnlyMemory<byte> memory in result.Buffer)
            {
                Assert.Equal(-1, Pattern.FirstDifference(memory.Span, at));
                at += memory.Length;
            }

            long consumed = random.Next(4) == 0 ? random.NextInt64(result.Buffer.Length + 1) : result.Buffer.Length;
            bool isAll = consumed == result.Buffer.Length;
            SequencePosition position = result.Buffer.GetPosition(consumed);
            index += (int)consumed;
            reader.AdvanceTo(position, random.Next(2) == 0 ? position : result.Buffer.End);
            if (result.IsCompleted && isAll)
            {
                Assert.Equal(index, reader.Position);
                await reader.CompleteAsync();
                return index - start;
            }
        }
    }

    private async Task<int> CopyAsync(FilePipeReader reader, Random random, int index, bool toFile)
    {
        string copy = _folder.File("copy");
        if (toFile)
        {
            await using FilePipeWriter writer = FilePipeWriter.Create(
                copy, new() { Caching = random.Next(2) == 0 ? FileCaching.Direct : FileCaching.Keep });
            await reader.CopyToAsync(writer, _stop);
            await writer.CompleteAsync();
        }
        else
        {
            await using FileStream stream = File.Create(copy);
            await reader.CopyToAsync(stream, _stop);
        }

        await reader.CompleteAsync();
        byte[] bytes = await File.ReadAllBytesAsync(copy, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(bytes, index));
        return bytes.Length;
    }

    private async Task<int> ReadStreamAsync(FilePipeReader reader, Random random, int index)
    {
        int start = index;
        await using Stream stream = reader.AsStream();
        byte[] bytes = new byte[random.Next(1, 200_000)];
        int read;
        while ((read = await stream.ReadAsync(bytes, _stop)) > 0)
        {
            Assert.Equal(-1, Pattern.FirstDifference(bytes.AsSpan(0, read), index));
            index += read;
        }

        return index - start;
    }

    private async Task WriteAsync(Random random)
    {
        bool isNew = random.Next(2) == 0;
        bool replaces = isNew && random.Next(3) == 0;
        string path = _folder.File("written");
        File.Delete(path);
        byte[] old = [];
        int offset = 0;
        if (!isNew)
        {
            old = new byte[Length(random)];
            random.NextBytes(old);
            File.WriteAllBytes(path, old);
            offset = random.Next(2) == 0 ? Length(random) : random.Next(old.Length + 1);
        }

        FilePipeWriterOptions options = new()
        {
            Caching = FileCaching.Direct,
            Mode = isNew ? FileMode.Create : FileMode.Open,
            Offset = isNew ? null : offset,
            Replace = replaces,
            PreallocationSize = isNew && random.Next(2) == 0 ? Length(random) : 0,
            FlushGuarantee = (FlushGuarantee)random.Next(20) switch
            {
                FlushGuarantee.Durable => FlushGuarantee.Durable,
                > FlushGuarantee.Durable and < (FlushGuarantee)8 => FlushGuarantee.Written,
                _ => FlushGuarantee.WriteBehind,
            },
            MinimumBufferSize = s_buffers[random.Next(s_buffers.Length)],
            PauseWriterThreshold = random.Next(3) == 0 ? random.Next(Most) : 1 << 20,
            WritesInFlight = random.Next(6),
        };
        bool byHandle = !isNew && random.Next(3) == 0 && !OperatingSystem.IsWindows();
        SafeFileHandle? handle = byHandle ? File.OpenHandle(path, FileMode.Open, FileAccess.Write) : null;
        FilePipeWriter writer = Direct.Open(() =>
            handle is null ? FilePipeWriter.Create(path, options) : FilePipeWriter.Create(handle, options with { Mode = FileMode.Create }));
        int total = Length(random);
        int flushed = 0;
        int index = 0;
        while (index < total)
        {
            int length = Math.Min(total - index,
                random.Next(3) switch { 0 => random.Next(1, 5000), 1 => random.Next(1, 300_000), _ => Block * random.Next(1, 200) });
            switch (random.Next(3))
            {
                case 0:
                    await writer.WriteAsync(Pattern.Bytes(length + 3, index - 3).AsMemory(3), _stop);
                    index += length;
                    flushed = index;
                    break;
                case 1:
                    Memory<byte> room = writer.GetMemory(random.Next(2) == 0 ? 0 : length);
                    length = Math.Min(length, room.Length);
                    Pattern.Bytes(length, index).CopyTo(room);
                    writer.Advance(length);
                    index += length;
                    break;
                default:
                    await writer.FlushAsync(_stop);
                    flushed = index;
                    break;
            }
        }

        bool aborts = random.Next(8) == 0;
        bool drops = !aborts && !replaces && random.Next(8) == 0;
        if (aborts)
        {
            writer.Abort();
            await writer.DisposeAsync();
        }
        else
        {
            await writer.CompleteAsync(drops ? new InvalidOperationException() : null);
        }

        if (replaces && aborts)
        {
            Assert.False(File.Exists(path));
            return;
        }

        byte[] bytes = await File.ReadAllBytesAsync(path, _stop);
        int expected = drops ? flushed : index;
        if (aborts)
        {
            // A prefix of what was written, and behind it what was there before.
            int prefix = isNew ? bytes.Length : 0;
            Assert.InRange(bytes.Length, Math.Min(prefix, old.Length),
                Math.Max(Math.Max(old.Length, offset + index), (int)options.PreallocationSize));
            return;
        }

        byte[] whole = new byte[Math.Max(old.Length, expected == 0 ? 0 : offset + expected)];
        old.CopyTo(whole, 0);
        Pattern.Bytes(expected).CopyTo(whole, expected == 0 ? 0 : offset);
        Assert.Equal(whole.Length, bytes.Length);
        Assert.Equal(-1, whole.AsSpan().CommonPrefixLength(bytes) is int same && same == whole.Length ? -1 : same);
    }
}

/// <summary>Opens files for direct I/O.</summary>
internal static class Direct
{
    /// <summary>Skips the test where the file system has none.</summary>
    public static T Open<T>(Func<T> open)
    {
        try
        {
            return open();
        }
        catch (NotSupportedException e)
        {
            Assert.Skip(e.Message);
            throw;
        }
    }
}
