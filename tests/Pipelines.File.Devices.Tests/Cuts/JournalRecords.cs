using System.Buffers.Binary;
using System.Globalization;

namespace FilePipelines.Devices.Tests;

/// <summary>
/// Several callers append to a journal of many short segments, some of them batches, old segments are trimmed, and a consumer follows.
/// </summary>
internal sealed class JournalRecords(FlushGuarantee guarantee) : Workload
{
    private const int Callers = 6;
    private const int RecordsEach = 60;
    private const int TrimAt = 200;
    private const string Trimmed = "trimmed";
    private const string Consumed = "consumed";

    internal override async Task RunAsync(string folder, Acknowledge acknowledge, Random random)
    {
        await using Journal journal = await Journal.OpenAsync(Path.Combine(folder, "journal"), Options(guarantee));

        // With another guarantee its commits would put on the device what the control is to lose.
        Task consuming = guarantee != FlushGuarantee.Durable ? Task.CompletedTask : Task.Run(async () =>
        {
            await using JournalConsumer consumer = await journal.OpenConsumerAsync("consumer");
            await foreach (JournalConsumerBatch batch in consumer.ReadBatchesAsync(follow: true))
            {
                await consumer.CommitAsync(batch.NextSequence);
                acknowledge(Consumed, batch.NextSequence);
                if (batch.NextSequence == Callers * RecordsEach)
                {
                    break;
                }
            }
        });
        await Task.WhenAll(Enumerable.Range(0, Callers).Select(caller => Task.Run(async () =>
        {
            for (int i = 0; i < RecordsEach; i += 2)
            {
                int id = (caller * RecordsEach) + i;
                long sequence = caller % 2 == 0 ? await journal.AppendAsync(RecordOf(id))
                    : await journal.AppendBatchAsync([RecordOf(id), RecordOf(id + 1)]);
                acknowledge($"{sequence}", id);
                long second = caller % 2 == 0 ? await journal.AppendAsync(RecordOf(id + 1)) : sequence + 1;
                acknowledge($"{second}", id + 1);
                if (sequence <= TrimAt && second >= TrimAt)
                {
                    acknowledge(Trimmed, TrimAt / 2);
                    await journal.TrimBeforeAsync(TrimAt / 2);
                }
            }
        })));
        await consuming;
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

        if (promises.TryGetValue(Consumed, out long consumed))
        {
            await CheckConsumerAsync(journal, consumed);
        }

        long kept = promises.GetValueOrDefault(Trimmed);
        Demand(journal.FirstSequence <= kept, $"Records before {kept} were trimmed, and {journal.FirstSequence} is the first.");
        foreach ((string subject, long id) in promises)
        {
            Demand(
                subject is Trimmed or Consumed || long.Parse(subject, CultureInfo.InvariantCulture) is long sequence
                    && (sequence < journal.FirstSequence || (there.TryGetValue(sequence, out int found) && found == id)),
                $"Record {subject} was appended; there are {journal.FirstSequence} to {journal.NextSequence - 1}.");
        }
    }

    /// <summary>The consumer is where it was, or farther, and not beyond the journal's end.</summary>
    private static async Task CheckConsumerAsync(Journal journal, long consumed)
    {
        try
        {
            await using JournalConsumer consumer = await journal.OpenConsumerAsync("consumer");
            Demand(
                consumer.Position.Sequence >= consumed && consumer.Position.Sequence <= journal.NextSequence,
                $"{consumed} records were processed; the consumer is at {consumer.Position.Sequence} of {journal.NextSequence}.");
        }
        catch (Exception e) when (e is JournalChangedException or JournalRecordsRemovedException)
        {
            throw new LostPromiseException($"{consumed} records were processed: {e.Message}", e);
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
