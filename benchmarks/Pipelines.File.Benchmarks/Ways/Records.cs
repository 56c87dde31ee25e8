using System.Buffers;
using System.Buffers.Binary;

namespace FilePipelines.Benchmarks;

/// <summary>The ways to records with a length in front, 46 bytes each; the first, a loop by hand, is the baseline.</summary>
internal static class Records
{
    private const int BufferSize = 256 * 1024;
    private const int Prefix = sizeof(int);
    private const int Payload = 42;

    internal static Grid Grid(Scale scale) => new(
        "records", $"{Figures.Count(scale.Records)} records of 46 B, a sum over each", "file", 8,
        new PairedMeasurement(scale.MinRounds, 15, scale.Sample), "**Records**: a parser that is a delegate is called for each.",
        folder => [new Column("46 B", Candidates(Make(folder, scale.Records)))]);

    /// <summary>Writes so many records into a file of the folder, and returns its path.</summary>
    private static string Make(TemporaryFolder folder, int count)
    {
        string path = folder.PathOf("records.bin");
        Random random = new(Seed: 46);
        byte[] block = new byte[(Prefix + Payload) * 10_000];
        using FileStream stream = new(path, FileMode.Create, FileAccess.Write, FileShare.None, bufferSize: 0);
        for (int left = count; left > 0; left -= 10_000)
        {
            random.NextBytes(block);
            for (int i = 0; i < block.Length; i += Prefix + Payload)
            {
                BinaryPrimitives.WriteInt32LittleEndian(block.AsSpan(i), Payload);
            }

            stream.Write(block.AsSpan(0, Math.Min(left, 10_000) * (Prefix + Payload)));
        }

        return path;
    }

    private static IReadOnlyList<Candidate> Candidates(string path) =>
    [
        new("by hand: FileStream, 256 KiB", () => new(ByHand<Parser>(path, BufferSize, default))),
        new("by hand: FileStream, 64 KiB", () => new(ByHand<Parser>(path, BufferSize / 4, default))),
        new("by hand: the same through a delegate", () => new(ByHand(path, BufferSize, new DelegateParser(TryTake)))),
        new("ReadRecordBatchesAsync", () => BatchesAsync(path, TryTake)),
        new("ReadRecordBatchesAsync, a lambda", () => BatchesAsync(
            path, static (ReadOnlySpan<byte> bytes, out int consumed, out long record) => TryTake(bytes, out consumed, out record))),
        new("ReadRecordBatchesAsync, a struct", () => StructBatchesAsync(path)),
    ];

    private static long ByHand<TParser>(string path, int size, TParser parser)
        where TParser : struct, IRecordParser<long>
    {
        long sum = 0;
        int left = ReadLoop.Run(path, size, rest =>
        {
            long some = 0;
            while (parser.Parse(rest, out int length, out long record) == OperationStatus.Done)
            {
                some += record;
                rest = rest[length..];
            }

            sum += some;
            return rest;
        });
        return left == 0 ? sum : throw new InvalidDataException("A record is damaged, cut off, or longer than the buffer.");
    }

    private static async ValueTask<long> BatchesAsync(string path, RecordSpanParser<long> parser)
    {
        long sum = 0;
        await foreach (RecordBatch<long> batch in FilePipeReader.Create(path).ReadRecordBatchesAsync(parser))
        {
            foreach (long record in batch)
            {
                sum += record;
            }
        }

        return sum;
    }

    private static async ValueTask<long> StructBatchesAsync(string path)
    {
        long sum = 0;
        await foreach (RecordBatch<long, Parser> batch in FilePipeReader.Create(path).ReadRecordBatchesAsync<long, Parser>(default))
        {
            foreach (long record in batch)
            {
                sum += record;
            }
        }

        return sum;
    }

    /// <summary>A record is the exclusive or of what it holds.</summary>
    private static OperationStatus TryTake(ReadOnlySpan<byte> bytes, out int consumed, out long record)
    {
        record = 0;
        consumed = bytes.Length < Prefix ? Prefix : Prefix + BinaryPrimitives.ReadInt32LittleEndian(bytes);
        if (consumed < Prefix + sizeof(long))
        {
            return bytes.Length < Prefix ? OperationStatus.NeedMoreData : OperationStatus.InvalidData;
        }

        if (bytes.Length < consumed)
        {
            return OperationStatus.NeedMoreData;
        }

        foreach (long one in System.Runtime.InteropServices.MemoryMarshal.Cast<byte, long>(bytes[Prefix..consumed]))
        {
            record ^= one;
        }

        return OperationStatus.Done;
    }

    private readonly struct Parser : IRecordParser<long>
    {
        public OperationStatus Parse(ReadOnlySpan<byte> bytes, out int consumed, out long record)
            => TryTake(bytes, out consumed, out record);
    }

    private readonly struct DelegateParser(RecordSpanParser<long> parser) : IRecordParser<long>
    {
        public OperationStatus Parse(ReadOnlySpan<byte> bytes, out int consumed, out long record)
            => parser(bytes, out consumed, out record);
    }
}
