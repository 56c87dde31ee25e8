using System.Buffers.Binary;

namespace FilePipelines.Devices.Child;

/// <summary>A journal to which several callers append, and whose old segments are trimmed.</summary>
internal sealed class CrashJournal(string folder, ExpectedState state) : ICrashFeature
{
    private const string Subject = "journal";
    private const int Callers = 4;
    private const int MostKept = 20_000;

    private readonly string _folder = Path.Combine(folder, "journal");

    public async Task CheckAsync(bool isLast)
    {
        await using Journal journal = await OpenAsync();
        long next = journal.FirstSequence;
        await foreach (JournalBatch batch in journal.ReadBatchesAsync(journal.FirstSequence))
        {
            foreach (JournalRecord record in batch)
            {
                WrongStateException.Demand(
                    record.Sequence == next && record.Span.Length >= sizeof(int)
                        && record.Span.SequenceEqual(RecordOf(BinaryPrimitives.ReadInt32LittleEndian(record.Span))),
                    $"Record {record.Sequence} of {record.Span.Length} bytes comes instead of {next}, or is wrong.");
                next++;
            }
        }

        WrongStateException.Demand(
            next == journal.NextSequence && next > state.LastDone(Subject),
            $"The journal has records up to {next}, and {state.LastDone(Subject)} was appended. It tells {journal}.");
    }

    public async Task RunAsync(Random random)
    {
        await using Journal journal = await OpenAsync();
        Lock turn = new();
        await await Task.WhenAny(Enumerable.Range(0, Callers).Select(_ => new Random(random.Next())).Select(mine => Task.Run(async () =>
        {
            while (true)
            {
                long sequence = await journal.AppendAsync(RecordOf(mine.Next()));
                lock (turn)
                {
                    // Others may have told a later one already.
                    if (sequence > state.LastDone(Subject))
                    {
                        state.Done(Subject, sequence);
                    }
                }

                if (sequence % (MostKept / 4) == 0 && sequence > MostKept)
                {
                    await journal.TrimBeforeAsync(sequence - MostKept);
                }
            }
        })));
    }

    private ValueTask<Journal> OpenAsync() => Journal.OpenAsync(_folder, new JournalOptions { SegmentSize = 1024 * 1024 });

    private static byte[] RecordOf(int id)
    {
        byte[] record = new byte[sizeof(int) + (id % 700)];
        BinaryPrimitives.WriteInt32LittleEndian(record, id);
        Pattern.Fill(record.AsSpan(sizeof(int)), id);
        return record;
    }
}
