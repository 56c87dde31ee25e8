using System.Buffers.Binary;
using System.Globalization;

namespace FileDevicesTests;

/// <summary>Several callers append to a journal of many short segments, and old segments are trimmed.</summary>
internal sealed class JournalRecords(FlushGuarantee guarantee) : Workload
{
    private const int Callers = 6;
    private const int RecordsEach = 60;
    private const int TrimAt = 200;
    private const string Trimmed = "trimmed";

    internal override async Task RunAsync(string folder, Acknowledge acknowledge, Random random)
    {
        await using Journal journal = await Journal.OpenAsync(Path.Combine(folder, "journal"), Options(guarantee));
        await Task.WhenAll(Enumerable.Range(0, Callers).Select(caller => Task.Run(async () =>
        {
            for (int i = 0; i < RecordsEach; i++)
            {
                int id = (caller * RecordsEach) + i;
                long sequence = await journal.AppendAsync(RecordOf(id));
                acknowledge($"{sequence}", id);
                if (sequence == TrimAt)
                {
                    acknowledge(Trimmed, sequence / 2);
                    await journal.TrimBeforeAsync(sequence / 2);
                }
            }
        })));
    }

    internal override async Task CheckAsync(string folder, IReadOnlyDictionary<string, long> promises)
    {
        string path = Path.Combine(folder, "journal");
        Dictionary<long, int> there = [];
        await using Journal journal = await OpenAsync(path, promises);
        await foreach (JournalBatch batch in journal.ReadBatchesAsync(journal.FirstSequence))
        {
            foreach (JournalRecord record in batch)
            {
                int id = record.Span.Length < sizeof(int) ? -1 : BinaryPrimitives.ReadInt32LittleEndian(record.Span);
                Demand(
                    id is >= 0 and < Callers * RecordsEach && record.Span.SequenceEqual(RecordOf(id)),
                    $"Record {record.Sequence} of {record.Span.Length} bytes was never appended.");
                there.Add(record.Sequence, id);
            }
        }

        long kept = promises.GetValueOrDefault(Trimmed);
        Demand(journal.FirstSequence <= kept, $"Records before {kept} were trimmed, and {journal.FirstSequence} is the first.");
        foreach ((string subject, long id) in promises)
        {
            Demand(
                subject == Trimmed || long.Parse(subject, CultureInfo.InvariantCulture) is long sequence
                    && (sequence < journal.FirstSequence || (there.TryGetValue(sequence, out int found) && found == id)),
                $"Record {subject} was appended; there are {journal.FirstSequence} to {journal.NextSequence - 1}.");
        }
    }

    private static async Task<Journal> OpenAsync(string path, IReadOnlyDictionary<string, long> promises)
    {
        try
        {
            return await Journal.OpenAsync(path, Options(FlushGuarantee.Durable));
        }
        catch (InvalidJournalException e)
        {
            throw new LostPromiseException($"The journal with {promises.Count} records cannot be opened: {e.Message}", e);
        }
    }

    private static JournalOptions Options(FlushGuarantee guarantee) => new() { SegmentSize = 64 * 1024, FlushGuarantee = guarantee };

    private static byte[] RecordOf(int id)
    {
        byte[] record = new byte[sizeof(int) + (id * 37 % 1500)];
        BinaryPrimitives.WriteInt32LittleEndian(record, id);
        Pattern.Fill(record.AsSpan(sizeof(int)), id);
        return record;
    }
}
