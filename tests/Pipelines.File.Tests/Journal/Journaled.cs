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
            next = Check(batch, next);
        }

        return next;
    }

    /// <summary>Steps until the record before <paramref name="end"/> has come, and checks every one.</summary>
    public static async Task ReadUntilAsync(IAsyncEnumerator<JournalBatch> batches, long next, long end)
    {
        while (next < end)
        {
            Assert.True(await GrowingFile.Bounded(batches.MoveNextAsync()));
            next = Check(batches.Current, next);
        }

        Assert.Equal(end, next);
    }

    /// <summary>
    /// Has the child perform a command under strace(1), and returns the lines of these calls that concern a file or a folder of that name.
    /// </summary>
    public static async Task<string[]> TraceAsync(TempFolder temp, string calls, string file, string command, string folder, string output)
    {
        ChildProcess.SkipUnlessLinux("strace");
        string log = temp.File("calls");
        (int status, string told, _) = await ChildProcess.RunAsync(
            $"{ChildProcess.Strace} -qq -y -s 0 -e trace={calls} -o '{log}' {ChildProcess.Command(command, folder)}");
        Assert.Equal((0, output), (status, told.Trim()));
        return [.. (await File.ReadAllLinesAsync(log, Stop)).Where(line => line.Contains(file, StringComparison.Ordinal))];
    }

    /// <summary>Appends eight records at once, again and again, until the journal has failed. The last acknowledged number.</summary>
    public static async Task<long> AppendUntilItFailsAsync(Journal journal, int length)
    {
        long acknowledged = -1;
        while (journal.Error is null)
        {
            Task<long>[] appends = [.. Enumerable.Range(0, 8).Select(_ => journal.AppendAsync(new byte[length], Stop).AsTask())];
            foreach (Task<long> append in appends)
            {
                await Xunit.Record.ExceptionAsync(() => append);
                acknowledged = append.IsCompletedSuccessfully ? await append : acknowledged;
            }
        }

        return acknowledged;
    }

    /// <summary>The segment files, oldest first.</summary>
    public static string[] Segments(string folder) => [.. Directory.GetFiles(folder, "*.journal").Order(StringComparer.Ordinal)];

    /// <summary>Checks every record of a batch that begins with this number, and returns the one behind it.</summary>
    public static long Check(JournalBatch batch, long next)
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
        return next;
    }

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
