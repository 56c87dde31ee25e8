namespace FilePipelines.Tests;

/// <summary>What a reader has read is told from other records that get the same numbers.</summary>
public sealed class JournalPositionTests : InAJournal
{
    private const int HeaderLength = 4096;

    private static readonly JournalOptions s_small = new() { SegmentSize = 8 * 1024, PreallocateSegments = false };

    [Fact]
    public void Parse_TextOfAPosition_IsThePosition()
    {
        JournalPosition position = new(Guid.NewGuid(), 0x1f3c5a7e9b2d4f60, 184);
        Assert.Equal(position, JournalPosition.Parse(position.ToString(), null));
        foreach (string wrong in new[]
        {
            "", "1:2:3", position + ":", position + "x", position + "\0", $"{position.Id:N}:1:-1", " " + position,
        })
        {
            Assert.False(JournalPosition.TryParse(wrong, out _), wrong);
            Assert.Throws<FormatException>(() => JournalPosition.Parse(wrong, null));
        }
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task ReadBatchesAsync_FromAPosition_GoesOnThere(bool isByFolder)
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        for (int i = 0; i < 60; i++)
        {
            JournalPosition position = journal.Position;
            await Journaled.AppendAsync(journal, 1);
            IAsyncEnumerable<JournalBatch> reading = isByFolder ? JournalReader.Open(_folder).ReadBatchesAsync(position, false, _stop)
                : journal.ReadBatchesAsync(position, false, _stop);
            Assert.Equal(i + 1, await Journaled.ReadAsync(reading, i));
        }

        JournalPosition end = journal.Position;
        Assert.Equal(60, await Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(end, false, _stop), 60));
        await Assert.ThrowsAsync<JournalChangedException>(
            () => Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(end with { Sequence = 61 }, true, _stop), 61));
        await Assert.ThrowsAsync<JournalChangedException>(
            () => Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(end with { Epoch = 1 }, true, _stop), 60));
        await Assert.ThrowsAsync<JournalChangedException>(
            () => Journaled.ReadAsync(journal.ReadBatchesAsync(end with { Id = Guid.NewGuid() }, true, _stop), 60));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task ReadBatchesAsync_RecordsWereRemoved_SaysWhichIsTheFirst(bool isByFolder)
    {
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 100);
        await journal.TrimBeforeAsync(70, _stop);
        JournalRecordsRemovedException e = await Assert.ThrowsAsync<JournalRecordsRemovedException>(() => Journaled.ReadAsync(
            isByFolder ? JournalReader.Open(_folder).ReadBatchesAsync(10, true, _stop) : journal.ReadBatchesAsync(10, true, _stop), 10));
        Assert.Equal((10, journal.FirstSequence), (e.Sequence, e.First));
        Assert.Contains("Journal.Oldest", e.Message, StringComparison.Ordinal);
        Assert.Equal(100, await Journaled.ReadAsync(
            isByFolder ? JournalReader.Open(_folder).ReadBatchesAsync(Journal.Oldest, false, _stop)
                : journal.ReadBatchesAsync(Journal.Oldest, false, _stop), journal.FirstSequence));
        Assert.Throws<ArgumentOutOfRangeException>(() => journal.ReadBatchesAsync(101, cancellationToken: _stop));
    }

    /// <summary>A follower that waits at 100 while the journal is repaired to fewer records and goes on.</summary>
    [Theory]
    [InlineData(0), InlineData(1), InlineData(2)]
    public async Task RepairAsync_AFollowerHasReadMore_TellsIt(int damaged)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows() && damaged > 0, "A segment that a follower has open keeps its name there.");
        await Journaled.MakeAsync(_folder, 100, s_small);
        (IAsyncEnumerator<JournalBatch> follower, JournalPosition read, JournalPosition kept) = await FollowAsync(100);
        await using IAsyncEnumerator<JournalBatch> following = follower;
        ValueTask<bool> next = follower.MoveNextAsync();
        string[] segments = Journaled.Segments(_folder);

        // In the last segment, in one before, and in the last one's first record, so that nothing of it is left.
        // The last record stands before a statement.
        Journaled.Flip(
            damaged == 1 ? segments[^3] : segments[^1],
            damaged switch { 0 => new FileInfo(segments[^1]).Length - 40, 1 => HeaderLength + 2000, _ => HeaderLength + 40 });
        JournalRepair repair = await Journal.RepairAsync(_folder, cancellationToken: _stop);
        Assert.InRange(repair.Summary.NextSequence, 1, 99);
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        Assert.Equal(read.Id, journal.Id);
        await Assert.ThrowsAsync<JournalChangedException>(async () => await GrowingFile.Bounded(next.AsTask()));
        await Journaled.AppendAsync(journal, 50);
        await Assert.ThrowsAsync<JournalChangedException>(
            () => Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(read, true, _stop), 100));
        Assert.True(kept.Sequence <= repair.Summary.NextSequence);
        Assert.Equal(journal.NextSequence, await Journaled.ReadAsync(journal.ReadBatchesAsync(kept, false, _stop), kept.Sequence));
    }

    /// <summary>As when the process is killed between the cut and what tells the records behind it from those before.</summary>
    [Fact]
    public async Task RepairAsync_IsEndedHalfWay_NumbersAreToldApartAllTheSame()
    {
        await Journaled.MakeAsync(_folder, 100, s_small);
        (IAsyncEnumerator<JournalBatch> follower, JournalPosition read, _) = await FollowAsync(100);
        await follower.DisposeAsync();
        string last = Journaled.Segments(_folder)[^1];
        using (FileStream cut = new(last, FileMode.Open, FileAccess.ReadWrite))
        {
            cut.SetLength(cut.Length - 40);
        }

        await File.WriteAllBytesAsync(Path.Combine(_folder, "repair"), [], _stop);
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, 50);
        await Assert.ThrowsAsync<JournalChangedException>(
            () => Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(read, true, _stop), 100));
        Assert.False(File.Exists(Path.Combine(_folder, "repair")));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task OpenAsync_TheFolderIsMadeAnew_AFollowerIsTold(bool isAsLong)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "A segment that a follower has open keeps its name there.");
        await Journaled.MakeAsync(_folder, 30, s_small);
        (IAsyncEnumerator<JournalBatch> follower, JournalPosition read, _) = await FollowAsync(30);
        await using IAsyncEnumerator<JournalBatch> following = follower;
        ValueTask<bool> next = follower.MoveNextAsync();
        Array.ForEach(Journaled.Segments(_folder), File.Delete);
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        await Journaled.AppendAsync(journal, isAsLong ? 60 : 1);
        await Assert.ThrowsAsync<JournalChangedException>(async () => await GrowingFile.Bounded(next.AsTask()));
        await Assert.ThrowsAsync<JournalChangedException>(
            () => Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(read, true, _stop), 30));
    }

    [Fact]
    public async Task OpenAsync_TheNewestSegmentIsGone_ItsNumbersAreNotTakenForThoseThatWereRead()
    {
        await Journaled.MakeAsync(_folder, 100, s_small);
        (IAsyncEnumerator<JournalBatch> follower, JournalPosition read, _) = await FollowAsync(100);
        await follower.DisposeAsync();
        File.Delete(Journaled.Segments(_folder)[^1]);
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        Assert.InRange(journal.NextSequence, 1, 99);
        await Journaled.AppendAsync(journal, 60);
        await Assert.ThrowsAsync<JournalChangedException>(
            () => Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(read, true, _stop), 100));
    }

    /// <summary>A reader that has read so many records, where it is, and where it was after 20 or more.</summary>
    private async Task<(IAsyncEnumerator<JournalBatch> Follower, JournalPosition Read, JournalPosition Early)> FollowAsync(int count)
    {
        IAsyncEnumerator<JournalBatch> follower = JournalReader.Open(_folder, TimeSpan.FromMilliseconds(2))
            .ReadBatchesAsync(follow: true, cancellationToken: _stop).GetAsyncEnumerator(_stop);
        JournalPosition early = default;
        do
        {
            Assert.True(await follower.MoveNextAsync());
            early = early == default ? follower.Current.Position : early;
        }
        while (follower.Current.NextSequence < count);
        return (follower, follower.Current.Position, early);
    }
}
