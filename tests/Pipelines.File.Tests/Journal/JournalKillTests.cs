namespace FilePipelines.Tests;

/// <summary>
/// A process that appends and is killed at random moments, while another process follows: every acknowledged record is there once, in
/// order, for both. PIPELINES_FILE_KILLS (20) says how many times.
/// </summary>
[Trait("Category", StressTime.Category)]
public sealed class JournalKillTests : InAJournal
{
    private const int DefaultKills = 20;
    private const int Producers = 4;

    private static readonly int s_kills =
        int.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_KILLS"), CultureInfo.InvariantCulture, out int kills) ? kills
            : DefaultKills;

    [Fact]
    public async Task Child_KilledAtRandomMoments_KeepsEveryAcknowledgedRecordForAReaderInAnotherProcess()
    {
        ChildProcess.SkipUnlessLinux();
        string folder = Directory.CreateDirectory(_folder).FullName;
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

    /// <summary>Retention removes what the consumer has committed, and nothing else.</summary>
    [Theory]
    [InlineData(""), InlineData("100000"), InlineData("age")]
    public async Task Child_ConsumerAndWriterKilledAtRandomMoments_GoesOnWhereItHasCommittedAndMissesNoRecord(string retained)
    {
        ChildProcess.SkipUnlessLinux();
        string folder = Directory.CreateDirectory(_folder).FullName;
        await using (Journal made = await Journal.OpenAsync(folder, cancellationToken: _stop))
        {
            await (await made.OpenConsumerAsync("child", cancellationToken: _stop)).DisposeAsync();
        }

        string[] retain = retained.Length > 0 ? [retained] : [];
        Dictionary<long, string> processed = [];
        long committed = 0;
        for (int kill = 0; kill < s_kills; kill++)
        {
            using Process writer = ChildProcess.Start("exec " + ChildProcess.Command(
                ["journal", folder, Producers.ToString(CultureInfo.InvariantCulture), .. retain]));
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
        Assert.InRange(journal.FirstSequence, 0, retained.Length > 0 ? last.Position.Sequence : 0);
        for (long removed = 0; removed < journal.FirstSequence; removed++)
        {
            Assert.True(processed.Remove(removed));
        }

        await foreach (JournalBatch batch in journal.ReadBatchesAsync(Journal.Oldest, cancellationToken: _stop))
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

    /// <summary>
    /// Two processes open the journal in turns, and each is killed now and then: one at a time writes, and none is kept out for good.
    /// </summary>
    [Fact]
    public async Task Child_TwoOpenInTurnsAndOneIsKilled_NeverTwoWritersAndNoneIsKeptOut()
    {
        ChildProcess.SkipUnlessLinux();
        string folder = Directory.CreateDirectory(_folder).FullName;
        SortedDictionary<long, string> acknowledged = [];
        Task<string>[] said = [Task.FromResult(""), Task.FromResult("")];
        Process?[] turns = [null, null];
        for (int kill = 0; kill < s_kills + 2; kill++)
        {
            int at = kill % 2;
            await StopAsync(at);
            if (kill < s_kills)
            {
                turns[at] = ChildProcess.Start("exec " + ChildProcess.Command(
                    "journalturns", folder, kill.ToString(CultureInfo.InvariantCulture)));

                // Its turn comes, whoever was killed before.
                string first = await turns[at]!.StandardOutput.ReadLineAsync(_stop) ?? await turns[at]!.StandardError.ReadToEndAsync(_stop);
                said[at] = RestAsync(first + "\n", turns[at]!);
                await Task.Delay(TimeSpan.FromMilliseconds(Random.Shared.NextDouble() * 60), _stop);
            }
        }

        await using Journal journal = await Journal.OpenAsync(folder, cancellationToken: _stop);
        Assert.True(journal.NextSequence > acknowledged.Keys.Last());
        await foreach (JournalBatch batch in journal.ReadBatchesAsync(cancellationToken: _stop))
        {
            foreach (JournalRecord record in batch)
            {
                if (acknowledged.Remove(record.Sequence, out string? words))
                {
                    int[] numbers = [.. words.Split(' ')[1..].Select(number => int.Parse(number, CultureInfo.InvariantCulture))];
                    Assert.True(record.Span.SequenceEqual(JournalCommands.RecordOf(numbers[0], numbers[1])));
                }
            }
        }

        Assert.Empty(acknowledged);

        async Task<string> RestAsync(string first, Process process) => first + await process.StandardOutput.ReadToEndAsync(_stop);

        async Task StopAsync(int at)
        {
            if (turns[at] is { } process)
            {
                Assert.False(process.HasExited, await (process.HasExited ? said[at] : Task.FromResult("")));
                process.Kill();
                await process.WaitForExitAsync(_stop);
                process.Dispose();
            }

            // The last line may be cut. A number that was acknowledged twice throws.
            foreach (string line in (await said[at]).Split('\n').SkipLast(1))
            {
                acknowledged.Add(long.Parse(line.Split(' ')[0], CultureInfo.InvariantCulture), line);
            }

            (turns[at], said[at]) = (null, Task.FromResult(""));
        }
    }

    /// <summary>
    /// A repair is killed, and then the journal is opened or repaired: the records before the damage are there, all segments are, as they
    /// were, in place or beside, and numbers that are given again are told from those that were read.
    /// </summary>
    [Fact]
    public async Task Child_RepairIsKilledAtRandomMoments_LosesNothingBeforeTheDamageAndKeepsTheRestBeside()
    {
        const int Records = 200;
        ChildProcess.SkipUnlessLinux();
        JournalOptions options = new() { SegmentSize = 16 * 1024, PreallocateSegments = false };
        string damaged = _temp.File("damaged");
        await Journaled.MakeAsync(damaged, Records, options);
        JournalPosition end = await EndOfAsync(damaged);
        string[] segments = Journaled.Segments(damaged);
        Journaled.Flip(segments[segments.Length / 3], 4096 + 2000);
        InvalidJournalException damage = await Assert.ThrowsAsync<InvalidJournalException>(
            async () => await Journal.VerifyAsync(damaged, cancellationToken: _stop));
        Dictionary<string, byte[]> contents = segments.ToDictionary(path => Path.GetFileName(path), File.ReadAllBytes);
        double most = 100;
        int early = 0;
        int late = 0;
        for (int kill = 0; kill <= s_kills; kill++)
        {
            string parent = Directory.CreateDirectory(_temp.File($"kill-{kill}")).FullName;
            string folder = Directory.CreateDirectory(Path.Combine(parent, "journal")).FullName;
            segments.ToList().ForEach(path => File.Copy(path, Path.Combine(folder, Path.GetFileName(path))));
            using Process repair = ChildProcess.Start("exec " + ChildProcess.Command("journalrepair", folder));
            Assert.Equal("begun", await repair.StandardOutput.ReadLineAsync(_stop));
            long begun = Stopwatch.GetTimestamp();
            Task<string> said = repair.StandardOutput.ReadToEndAsync(_stop);
            if (kill == 0)
            {
                // How long one takes that nobody kills.
                Assert.StartsWith("repaired ", await said, StringComparison.Ordinal);
                most = Stopwatch.GetElapsedTime(begun).TotalMilliseconds;
            }
            else
            {
                await Task.Delay(TimeSpan.FromMilliseconds(Random.Shared.NextDouble() * most), _stop);
                repair.Kill();
            }

            await repair.WaitForExitAsync(_stop);
            late += (await said).Length > 0 ? 1 : 0;
            early += Directory.GetDirectories(parent).Length == 1 ? 1 : 0;

            if (kill % 2 == 0)
            {
                // It opens if what is damaged is not its end any more, or is no more.
                Exception? error = await Record.ExceptionAsync(
                    async () => await (await Journal.OpenAsync(folder, options, _stop)).DisposeAsync());
                Assert.True(error is null or InvalidJournalException, error?.ToString());
            }

            JournalRepair again = await Journal.RepairAsync(folder, cancellationToken: _stop);
            Assert.Equal(damage.Sequence, again.Summary.NextSequence);
            await using (Journal journal = await Journal.OpenAsync(folder, options, _stop))
            {
                await Journaled.AppendAsync(journal, Records);
                Assert.Equal(journal.NextSequence, await Journaled.ReadAsync(journal.ReadBatchesAsync(cancellationToken: _stop)));
                await Assert.ThrowsAsync<JournalChangedException>(
                    () => Journaled.ReadAsync(journal.ReadBatchesAsync(end, cancellationToken: _stop), end.Sequence));
            }

            // Opening and closing adds a statement to the last one.
            foreach ((string name, byte[] bytes) in contents)
            {
                Assert.Contains(
                    Directory.GetDirectories(parent), one => File.Exists(Path.Combine(one, name))
                        && File.ReadAllBytes(Path.Combine(one, name)).AsSpan().StartsWith(bytes));
            }
        }

        TestContext.Current.SendDiagnosticMessage(
            $"{s_kills} kills of a repair of {most:0} ms, {early} before it has made its folder, {late - 1} behind its end");
    }

    private async Task<JournalPosition> EndOfAsync(string folder)
    {
        await using Journal journal = await Journal.OpenAsync(folder, cancellationToken: _stop);
        return journal.Position;
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
