using System.Buffers.Binary;
using System.Globalization;
using Pipelines.File;

namespace FilePipelines.Child;

/// <summary>The commands that append to a journal and read one.</summary>
public static class JournalCommands
{
    /// <summary>The length of a record that says that the journal is over.</summary>
    public const int LastLength = 1;

    private const int MostBytes = 3000;

    /// <summary>The record that a producer appends: its number, how many it has appended before, and bytes that tell both.</summary>
    public static byte[] RecordOf(int producer, int count)
    {
        byte[] record = new byte[8 + ((producer * 7919) + (count * 104_729)) % MostBytes];
        BinaryPrimitives.WriteInt32LittleEndian(record, producer);
        BinaryPrimitives.WriteInt32LittleEndian(record.AsSpan(4), count);
        Pattern.Fill(record.AsSpan(8), (producer * 1_000_003L) + count);
        return record;
    }

    /// <summary>Appends until it is killed, and says "SEQUENCE PRODUCER COUNT" of each record that is acknowledged.</summary>
    internal static async Task<int> AppendAsync(string folder, int producers, string? retained)
    {
        // Small segments, so that many are begun.
        JournalOptions options = new()
        {
            SegmentSize = 64 * 1024,
            RetainBytes = long.TryParse(retained, CultureInfo.InvariantCulture, out long bytes) ? bytes : null,
            RetainAge = retained == "age" ? TimeSpan.Zero : null,
        };
        await using Journal journal = await Journal.OpenAsync(folder, options);
        Console.WriteLine($"opened {journal.NextSequence} {journal.CutBytes}");
        int begin = (int)journal.NextSequence;
        await Task.WhenAll(Enumerable.Range(0, producers).Select(producer => Task.Run(async () =>
        {
            for (int count = begin; ; count++)
            {
                long sequence = await journal.AppendAsync(RecordOf(producer, count));
                lock (options)
                {
                    Console.Out.Write($"{sequence} {producer} {count}\n");
                }
            }
        })));
        return 0;
    }

    /// <summary>Says "SEQUENCE PRODUCER COUNT" of each record, until one is of <see cref="LastLength"/>.</summary>
    internal static async Task<int> ReadAsync(string folder)
    {
        long next = 0;
        await foreach (JournalBatch batch in JournalReader.Open(folder).ReadBatchesAsync(follow: true))
        {
            foreach (JournalRecord record in batch)
            {
                if (record.Sequence != next++)
                {
                    Console.WriteLine($"record {record.Sequence} follows record {next - 2}");
                    return 4;
                }

                if (record.Span.Length == LastLength)
                {
                    return 0;
                }

                int producer = BinaryPrimitives.ReadInt32LittleEndian(record.Span);
                int count = BinaryPrimitives.ReadInt32LittleEndian(record.Span[4..]);
                if (!record.Span.SequenceEqual(RecordOf(producer, count)))
                {
                    Console.WriteLine($"record {record.Sequence} is not as it was appended");
                    return 4;
                }

                Console.Out.Write($"{record.Sequence} {producer} {count}\n");
            }
        }

        return 0;
    }

    /// <summary>
    /// Opens a journal when nobody else has it, appends some records, and closes it, until it is killed. Says "SEQUENCE PRODUCER COUNT" of
    /// each record that is acknowledged.
    /// </summary>
    internal static async Task<int> TakeTurnsAsync(string folder, int producer)
    {
        for (int count = 0; ;)
        {
            try
            {
                await using Journal journal = await Journal.OpenAsync(folder, new() { SegmentSize = 64 * 1024 });
                for (int end = count + 5; count < end; count++)
                {
                    Console.Out.Write($"{await journal.AppendAsync(RecordOf(producer, count))} {producer} {count}\n");
                }
            }
            catch (IOException e) when (e.Message.Contains("open for writing already", StringComparison.Ordinal))
            {
                // The other one has its turn.
            }

            await Task.Delay(1);
        }
    }

    /// <summary>Opens a journal and closes it, and says what it has.</summary>
    internal static async Task<int> OpenAsync(string folder)
    {
        await using Journal journal = await Journal.OpenAsync(folder, new() { MaxRecordLength = 1 << 30 });
        Console.WriteLine($"{journal.NextSequence} {journal.CutBytes}");
        return 0;
    }

    /// <summary>Repairs a journal that is damaged.</summary>
    internal static async Task<int> RepairAsync(string folder)
    {
        Console.Out.Write("begun\n");
        JournalRepair repair = await Journal.RepairAsync(folder);
        Console.Out.Write($"repaired {repair.Summary.NextSequence}\n");
        return 0;
    }

    /// <summary>
    /// Commits records as processed until it is killed. Says "processed SEQUENCE PRODUCER COUNT" before, "committed SEQUENCE" after.
    /// </summary>
    internal static async Task<int> ConsumeAsync(string folder)
    {
        await using JournalConsumer consumer = await JournalConsumer.OpenAsync(folder, "child");
        Console.Out.Write($"opened {consumer.Position.Sequence}\n");
        await foreach (JournalConsumerBatch batch in consumer.ReadBatchesAsync(follow: true))
        {
            foreach (JournalRecordCopy record in batch)
            {
                int producer = BinaryPrimitives.ReadInt32LittleEndian(record.Span);
                int count = BinaryPrimitives.ReadInt32LittleEndian(record.Span[4..]);
                if (!record.Span.SequenceEqual(RecordOf(producer, count)))
                {
                    Console.WriteLine($"record {record.Sequence} is not as it was appended");
                    return 4;
                }

                Console.Out.Write($"processed {record.Sequence} {producer} {count}\n");
            }

            await consumer.CommitAsync(batch.NextSequence);
            Console.Out.Write($"committed {batch.NextSequence}\n");
        }

        return 0;
    }

    internal static async Task<int> CountAsync(string folder)
    {
        int records = 0;
        await foreach (JournalBatch batch in JournalReader.Open(folder).ReadBatchesAsync())
        {
            records += batch.Count;
        }

        Console.WriteLine($"{records} records");
        return 0;
    }
}
