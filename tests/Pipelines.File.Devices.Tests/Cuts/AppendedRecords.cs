using System.Buffers;
using System.Buffers.Binary;

namespace FilePipelines.Devices.Tests;

/// <summary>Two writers append records to one file that was there before.</summary>
internal sealed class AppendedRecords(FlushGuarantee guarantee) : Workload
{
    private const int Writers = 2;
    private const int RecordsEach = 150;
    private const int HeaderLength = 12;
    private const int OldLength = 10_000;

    private static ReadOnlySpan<byte> Mark => "\nRECORD:\n"u8[..8];

    internal override async Task RunAsync(string folder, Acknowledge acknowledge, Random random)
    {
        string path = Path.Combine(folder, "log");
        FilePipeWriter old = FilePipeWriter.Create(path, new() { FlushGuarantee = guarantee });
        old.Write(Pattern.Bytes(OldLength));
        await old.CompleteAsync();
        acknowledge("old", OldLength);
        await Task.WhenAll(Enumerable.Range(0, Writers).Select(number => Task.Run(async () =>
        {
            FilePipeWriter writer = FilePipeWriter.Create(
                path, new() { Mode = FileMode.Append, Share = FileShare.ReadWrite, FlushGuarantee = guarantee });
            for (int i = 0; i < RecordsEach; i++)
            {
                int id = (number * RecordsEach) + i;
                writer.Write(RecordOf(id));
                await writer.FlushAsync();
                acknowledge($"{id}", 1);
            }

            await writer.CompleteAsync();
        })));
    }

    internal override Task CheckAsync(string folder, IReadOnlyDictionary<string, long> promises)
    {
        byte[] content = Read(Path.Combine(folder, "log"));
        HashSet<int> there = [];
        for (int at = 0, next; (next = content.AsSpan(at).IndexOf(Mark)) >= 0; at += next + 1)
        {
            ReadOnlySpan<byte> rest = content.AsSpan(at + next);
            if (rest.Length >= HeaderLength
                && BinaryPrimitives.ReadInt32LittleEndian(rest[8..]) is >= 0 and < Writers * RecordsEach and int id
                && rest.StartsWith(RecordOf(id)))
            {
                there.Add(id);
            }
        }

        foreach ((string subject, long value) in promises)
        {
            Demand(
                subject == "old" ? content.Length >= value && Pattern.FirstDifference(content.AsSpan(0, (int)value)) < 0
                    : there.Contains(int.Parse(subject, System.Globalization.CultureInfo.InvariantCulture)),
                $"Record {subject} was appended, and is not in the {content.Length} bytes of the file.");
        }

        return Task.CompletedTask;
    }

    private static byte[] RecordOf(int id)
    {
        byte[] record = new byte[HeaderLength + (id * 37 % 900)];
        Mark.CopyTo(record);
        BinaryPrimitives.WriteInt32LittleEndian(record.AsSpan(8), id);
        Pattern.Fill(record.AsSpan(HeaderLength), id);
        return record;
    }
}
