using FilePipelines.Child;
using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>Records and segments for tests of the journal.</summary>
internal static class Journaled
{
    private static CancellationToken Stop => TestContext.Current.CancellationToken;

    /// <summary>Record number <paramref name="sequence"/> of a test, which has some hundred bytes.</summary>
    public static byte[] Record(long sequence) => Pattern.Bytes(sequence * 37 % 700, sequence);

    /// <summary>Appends records, one after the other, from the journal's next number on.</summary>
    public static async Task AppendAsync(Journal journal, int count)
    {
        for (int i = 0; i < count; i++)
        {
            long sequence = journal.NextSequence;
            Assert.Equal(sequence, await journal.AppendAsync(Record(sequence), Stop));
        }
    }

    /// <summary>A closed journal with this many records.</summary>
    public static async Task MakeAsync(string folder, int count, JournalOptions? options = null)
    {
        await using Journal journal = await Journal.OpenAsync(folder, options, Stop);
        await AppendAsync(journal, count);
    }

    /// <summary>Reads to the end, checks every record, and returns the number behind the last.</summary>
    public static async Task<long> ReadAsync(IAsyncEnumerable<JournalBatch> batches, long from = 0)
    {
        long next = from;
        await foreach (JournalBatch batch in batches)
        {
            Assert.Equal(next, batch.FirstSequence);
            Assert.True(batch.Count > 0);
            foreach (JournalRecord record in batch)
            {
                Assert.Equal(next, record.Sequence);
                Assert.True(record.Span.SequenceEqual(Record(next)), $"Record {next} is another.");
                next++;
            }

            Assert.Equal(next, batch.NextSequence);
        }

        return next;
    }

    /// <summary>The segment files, oldest first.</summary>
    public static string[] Segments(string folder) => [.. Directory.GetFiles(folder, "*.journal").Order(StringComparer.Ordinal)];

    /// <summary>Changes one byte of a file.</summary>
    public static void Flip(string path, long offset)
    {
        using FileStream file = new(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
        file.Position = offset;
        int old = file.ReadByte();
        file.Position = offset;
        file.WriteByte((byte)(old ^ 0x10));
    }
}
