using System.Diagnostics;
using System.Globalization;
using FilePipelinesChild;
using Pipelines.File;

namespace FilePipelinesTests;

/// <summary>
/// A process that appends and is killed at random moments, while another process follows: every acknowledged record is there once, in
/// order, for both. PIPELINES_FILE_KILLS (20) says how many times.
/// </summary>
[Trait("Category", StressTime.Category)]
public sealed class JournalKillTests : IDisposable
{
    private const int DefaultKills = 20;
    private const int Producers = 4;

    private static readonly int s_kills =
        int.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_KILLS"), CultureInfo.InvariantCulture, out int kills) ? kills
            : DefaultKills;

    private readonly TempFolder _temp = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _temp.Dispose();

    [Fact]
    public async Task Child_KilledAtRandomMoments_KeepsEveryAcknowledgedRecordForAReaderInAnotherProcess()
    {
        ChildProcess.SkipUnlessLinux();
        string folder = Directory.CreateDirectory(_temp.File("journal")).FullName;
        using Process reader = ChildProcess.Start("exec " + ChildProcess.Command("journalread", folder));
        Task<string> read = reader.StandardOutput.ReadToEndAsync(_stop);
        SortedDictionary<long, string> acknowledged = [];
        long cut = 0;
        for (int kill = 0; kill < s_kills; kill++)
        {
            using Process writer = ChildProcess.Start("exec " + ChildProcess.Command(
                "journal", folder, Producers.ToString(CultureInfo.InvariantCulture)));
            string opened = await writer.StandardOutput.ReadLineAsync(_stop) ?? await writer.StandardError.ReadToEndAsync(_stop);
            Assert.StartsWith("opened ", opened, StringComparison.Ordinal);
            long[] numbers = [.. opened.Split(' ')[1..].Select(number => long.Parse(number, CultureInfo.InvariantCulture))];
            Assert.True(numbers[0] > acknowledged.Keys.LastOrDefault(-1), $"{numbers[0]} is the next number after {acknowledged.Count}");
            cut += numbers[1];

            // Mostly when it has acknowledged some: a process takes its time to begin.
            string first = kill % 8 == 0 ? "" : await writer.StandardOutput.ReadLineAsync(_stop) + "\n";
            Task<string> said = writer.StandardOutput.ReadToEndAsync(_stop);
            await Task.Delay(TimeSpan.FromMilliseconds(Random.Shared.NextDouble() * 60), _stop);
            writer.Kill();
            await writer.WaitForExitAsync(_stop);

            // The last line may be cut.
            foreach (string line in (first + await said).Split('\n').SkipLast(1))
            {
                acknowledged.Add(long.Parse(line.Split(' ')[0], CultureInfo.InvariantCulture), line);
            }
        }

        await using (Journal journal = await Journal.OpenAsync(folder, cancellationToken: _stop))
        {
            await journal.AppendAsync(new byte[JournalCommands.LastLength], _stop);
        }

        Assert.True(acknowledged.Count > 0);
        string[] shown = (await read).Split('\n')[..^1];
        Assert.Equal(0, await ExitOf(reader));
        Assert.All(acknowledged, one => Assert.Equal(one.Value, shown[one.Key]));
        JournalSummary summary = await Journal.VerifyAsync(folder, cancellationToken: _stop);
        Assert.Equal(shown.Length + 1, summary.NextSequence);
        TestContext.Current.SendDiagnosticMessage(
            $"{s_kills} kills, {shown.Length} records, {acknowledged.Count} acknowledged, {cut} bytes cut, {summary.Segments} segments");
    }

    [Fact]
    public async Task Child_ConsumerAndWriterKilledAtRandomMoments_GoesOnWhereItHasCommittedAndMissesNoRecord()
    {
        ChildProcess.SkipUnlessLinux();
        string folder = Directory.CreateDirectory(_temp.File("journal")).FullName;
        Dictionary<long, string> processed = [];
        long committed = 0;
        for (int kill = 0; kill < s_kills; kill++)
        {
            using Process writer = ChildProcess.Start("exec " + ChildProcess.Command(
                "journal", folder, Producers.ToString(CultureInfo.InvariantCulture)));
            Assert.StartsWith("opened ", await writer.StandardOutput.ReadLineAsync(_stop), StringComparison.Ordinal);
            Task<string> appended = writer.StandardOutput.ReadToEndAsync(_stop);
            using Process consumer = ChildProcess.Start("exec " + ChildProcess.Command("journalconsume", folder));
            string opened = await consumer.StandardOutput.ReadLineAsync(_stop) ?? await consumer.StandardError.ReadToEndAsync(_stop);
            Assert.StartsWith("opened ", opened, StringComparison.Ordinal);
            long next = long.Parse(opened.Split(' ')[1], CultureInfo.InvariantCulture);
            Assert.InRange(next, committed, processed.Count);
            string first = kill % 4 == 0 ? "" : await ReadUntilAsync(consumer, kill % 2 == 0 ? "processed" : "committed");
            Task<string> said = consumer.StandardOutput.ReadToEndAsync(_stop);
            await Task.Delay(TimeSpan.FromMilliseconds(Random.Shared.NextDouble() * 60), _stop);
            (kill % 2 == 0 ? writer : consumer).Kill();
            await Task.Delay(TimeSpan.FromMilliseconds(Random.Shared.NextDouble() * 20), _stop);
            (kill % 2 == 0 ? consumer : writer).Kill();
            _ = await appended;

            // The last line may be cut.
            foreach (string line in (first + await said).Split('\n').SkipLast(1))
            {
                string[] words = line.Split(' ', 3);
                long sequence = long.Parse(words[1], CultureInfo.InvariantCulture);
                if (words[0] == "committed")
                {
                    Assert.Equal(next, committed = sequence);
                }
                else
                {
                    Assert.Equal(next++, sequence);
                    processed.TryAdd(sequence, words[2]);
                    Assert.Equal(processed[sequence], words[2]);
                }
            }
        }

        await using Journal journal = await Journal.OpenAsync(folder, cancellationToken: _stop);
        await using JournalConsumer last = await journal.OpenConsumerAsync("child", cancellationToken: _stop);
        Assert.InRange(last.Position.Sequence, Math.Max(committed, 1), processed.Count);
        await foreach (JournalBatch batch in journal.ReadBatchesAsync(cancellationToken: _stop))
        {
            foreach (JournalRecord record in batch)
            {
                if (processed.Remove(record.Sequence, out string? words))
                {
                    int[] numbers = [.. words.Split(' ').Select(number => int.Parse(number, CultureInfo.InvariantCulture))];
                    Assert.True(record.Span.SequenceEqual(JournalCommands.RecordOf(numbers[0], numbers[1])));
                }
            }
        }

        Assert.Empty(processed);
    }

    private async Task<string> ReadUntilAsync(Process process, string word)
    {
        string said = "";
        while (true)
        {
            string line = await process.StandardOutput.ReadLineAsync(_stop) ?? throw new InvalidOperationException("It has ended.");
            said += line + "\n";
            if (line.StartsWith(word, StringComparison.Ordinal))
            {
                return said;
            }
        }
    }

    private async Task<int> ExitOf(Process process)
    {
        await process.WaitForExitAsync(_stop);
        return process.ExitCode;
    }
}
