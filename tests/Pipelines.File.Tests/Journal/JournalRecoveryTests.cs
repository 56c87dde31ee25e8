using System.Globalization;
using Pipelines.File;

namespace FilePipelines.Tests;

public sealed class JournalRecoveryTests : InAJournal
{
    private const int HeaderLength = 4096;

    private static readonly JournalOptions s_small = new() { SegmentSize = 16 * 1024 };

    [Fact]
    public async Task OpenAsync_EveryTruncation_GivesAPrefixAndTellsWhatItCut()
    {
        await Journaled.MakeAsync(_folder, 6);
        string segment = Assert.Single(Journaled.Segments(_folder));
        byte[] whole = await File.ReadAllBytesAsync(segment, _stop);
        long before = -1;
        for (int length = HeaderLength; length <= whole.Length; length += 5)
        {
            await File.WriteAllBytesAsync(segment, whole[..length], _stop);
            await using Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop);
            long next = await Journaled.ReadAsync(journal.ReadBatchesAsync(cancellationToken: _stop));
            Assert.Equal(journal.NextSequence, next);
            Assert.InRange(next, Math.Max(before, 0), 6);
            Assert.True(journal.CutBytes < 800, $"{journal.CutBytes} bytes were cut of {length}");
            before = next;
        }

        Assert.Equal(6, before);
    }

    [Theory]
    [InlineData(1)]
    [InlineData(100)]
    [InlineData(5000)]
    public async Task OpenAsync_GarbageBehindTheEnd_IsCutAndTold(int length)
    {
        await Journaled.MakeAsync(_folder, 50);
        string segment = Assert.Single(Journaled.Segments(_folder));
        byte[] garbage = new byte[length];
        new Random(length).NextBytes(garbage);
        garbage[^1] = 1;
        await File.AppendAllBytesAsync(segment, garbage, _stop);
        Assert.Equal(length, (await Journal.VerifyAsync(_folder, cancellationToken: _stop)).TornBytes);
        Assert.Equal(50, await Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop)));
        await using (Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop))
        {
            Assert.Equal((50, length), (journal.NextSequence, journal.CutBytes));
            await Journaled.AppendAsync(journal, 10);
        }

        await using Journal again = await Journal.OpenAsync(_folder, cancellationToken: _stop);
        Assert.Equal(0, again.CutBytes);
        Assert.Equal(60, await Journaled.ReadAsync(again.ReadBatchesAsync(cancellationToken: _stop)));
    }

    [Fact]
    public async Task OpenAsync_ZerosBehindTheEnd_AreNotTold()
    {
        await Journaled.MakeAsync(_folder, 50);
        await File.AppendAllBytesAsync(Assert.Single(Journaled.Segments(_folder)), new byte[100_000], _stop);
        await using Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop);
        Assert.Equal((50, 0), (journal.NextSequence, journal.CutBytes));
        await Journaled.AppendAsync(journal, 10);
        Assert.Equal(60, await Journaled.ReadAsync(journal.ReadBatchesAsync(cancellationToken: _stop)));
    }

    /// <summary>As a crash leaves an earlier segment before it is cut to the length of its records.</summary>
    [Fact]
    public async Task VerifyAsync_ZerosBehindAnEarlierSegment_AreNoBytesOfRecords()
    {
        await Journaled.MakeAsync(_folder, 200, s_small);
        JournalSummary before = await Journal.VerifyAsync(_folder, cancellationToken: _stop);
        await File.AppendAllBytesAsync(Journaled.Segments(_folder)[1], new byte[100_000], _stop);
        Assert.Equal(before, await Journal.VerifyAsync(_folder, cancellationToken: _stop));
    }

    [Fact]
    public async Task OpenAsync_ARecordInTheMiddleOfTheLastSegmentIsDamaged_ThrowsAndCutsNothing()
    {
        await Journaled.MakeAsync(_folder, 50);
        string segment = Assert.Single(Journaled.Segments(_folder));
        Assert.Equal(await PlaceOfAsync(segment, 20), await DamageAsync(segment, await PlaceOfAsync(segment, 20) + 30, 20));
    }

    [Fact]
    public async Task OpenAsync_ARecordOfManyThatWereAppendedTogetherIsDamaged_Throws()
    {
        await using (Journal journal = await Journal.OpenAsync(_folder, cancellationToken: _stop))
        {
            await Task.WhenAll(Enumerable.Range(0, 50).Select(i => journal.AppendAsync(Journaled.Record(i), _stop).AsTask()));
        }

        string segment = Assert.Single(Journaled.Segments(_folder));
        await DamageAsync(segment, await PlaceOfAsync(segment, 49) + 30, 49);
    }

    [Theory]
    [InlineData(0)]
    [InlineData(4)]
    [InlineData(8)]
    [InlineData(12)]
    [InlineData(16)]
    [InlineData(20)]
    [InlineData(24)]
    [InlineData(32)]
    public async Task VerifyAsync_AnyPartOfARecordInAnEarlierSegmentIsDamaged_Throws(int part)
    {
        await Journaled.MakeAsync(_folder, 200, s_small);
        string segment = Journaled.Segments(_folder)[1];
        long first = FirstOf(segment);
        long place = await PlaceOfAsync(segment, first + 3);
        Assert.Equal(place, await DamageAsync(segment, place + part, first + 3));
    }

    [Theory]
    [InlineData(0)]
    [InlineData(9)]
    [InlineData(20)]
    [InlineData(33)]
    [InlineData(60)]
    public async Task OpenAsync_DamagedHeader_Throws(int offset)
    {
        await Journaled.MakeAsync(_folder, 200, s_small);
        string segment = Journaled.Segments(_folder)[2];
        Assert.Equal(0, await DamageAsync(segment, offset, null));
    }

    [Fact]
    public async Task OpenAsync_MissingSegment_Throws()
    {
        await Journaled.MakeAsync(_folder, 200, s_small);
        string[] segments = Journaled.Segments(_folder);
        File.Delete(segments[2]);
        InvalidJournalException e = await Assert.ThrowsAsync<InvalidJournalException>(
            async () => await Journal.OpenAsync(_folder, cancellationToken: _stop));
        Assert.Equal((segments[3], 0), (e.Path, e.Offset));
        Assert.Equal(FirstOf(segments[2]), e.Sequence);
        Assert.Equal(segments.Length - 1, Journaled.Segments(_folder).Length);
        await Assert.ThrowsAnyAsync<Exception>(
            () => Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop)));
    }

    [Fact]
    public async Task OpenAsync_SegmentOfAnotherJournal_Throws()
    {
        await Journaled.MakeAsync(_folder, 200, s_small);
        await Journaled.MakeAsync(_temp.File("other"), 200, s_small);
        string segment = Journaled.Segments(_folder)[1];
        File.Copy(Journaled.Segments(_temp.File("other"))[1], segment, overwrite: true);
        InvalidJournalException e = await Assert.ThrowsAsync<InvalidJournalException>(
            async () => await Journal.OpenAsync(_folder, cancellationToken: _stop));
        Assert.Equal(segment, e.Path);
        Assert.Contains("another journal", e.Message, StringComparison.Ordinal);
    }

    /// <summary>It has the number that the next one names, but was repaired since: that one did not go on from it.</summary>
    [Fact]
    public async Task OpenAsync_SegmentOfAnotherEpoch_Throws()
    {
        await Journaled.MakeAsync(_folder, 200, s_small);
        SegmentFile before = SegmentFile.In(_folder)[0];
        byte[] header = (SegmentHeader.Read(before) with { Epoch = SegmentHeader.NewEpoch() }).ToBytes();
        using (FileStream file = File.OpenWrite(before.Path))
        {
            file.Write(header);
        }

        InvalidJournalException e = await Assert.ThrowsAsync<InvalidJournalException>(
            async () => await Journal.OpenAsync(_folder, cancellationToken: _stop));
        Assert.Equal(SegmentFile.In(_folder)[1].Path, e.Path);
        Assert.Contains("before this one is missing", e.Message, StringComparison.Ordinal);
    }

    /// <summary>As when a backup is put back in part: each of its records is whole, but the next segment went on from others.</summary>
    [Fact]
    public async Task VerifyAsync_SegmentOfACopyThatWentOnOtherwise_Throws()
    {
        string copy = Directory.CreateDirectory(_temp.File("copy")).FullName;
        await Journaled.MakeAsync(_folder, 5);
        string segment = Assert.Single(Journaled.Segments(_folder));
        string other = Path.Combine(copy, Path.GetFileName(segment));
        File.Copy(segment, other);
        await BeginTheNextAsync(_folder, 1);
        await BeginTheNextAsync(copy, 2);
        Assert.Equal(Journaled.Segments(_folder).Select(Path.GetFileName), Journaled.Segments(copy).Select(Path.GetFileName));
        await Journal.VerifyAsync(copy, cancellationToken: _stop);
        File.Copy(other, segment, overwrite: true);
        InvalidJournalException e = await Assert.ThrowsAsync<InvalidJournalException>(
            async () => await Journal.VerifyAsync(_folder, cancellationToken: _stop));
        Assert.Equal(segment, e.Path);
        Assert.Contains("the next segment was begun after it", e.Message, StringComparison.Ordinal);

        async Task BeginTheNextAsync(string folder, byte content)
        {
            byte[] record = [.. Enumerable.Repeat(content, 1000)];
            await using Journal journal = await Journal.OpenAsync(folder, s_small, _stop);
            for (int i = 0; i < 20; i++)
            {
                await journal.AppendAsync(record, _stop);
            }
        }
    }

    [Fact]
    public async Task OpenAsync_AnotherFile_Throws()
    {
        Directory.CreateDirectory(_folder);
        string segment = Path.Combine(_folder, $"{0:D20}.journal");
        await File.WriteAllTextAsync(segment, "This is a letter.", _stop);
        await Assert.ThrowsAsync<InvalidJournalException>(async () => await Journal.OpenAsync(_folder, cancellationToken: _stop));
        Assert.Equal("This is a letter.", await File.ReadAllTextAsync(segment, _stop));
    }

    [Fact]
    public async Task OpenAsync_ARecordOfAnEarlierSegmentIsDamaged_LeavesItToTheReader()
    {
        await Journaled.MakeAsync(_folder, 200, s_small);
        string segment = Journaled.Segments(_folder)[1];
        Journaled.Flip(segment, HeaderLength + 30);
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        InvalidJournalException e = await Assert.ThrowsAsync<InvalidJournalException>(
            () => Journaled.ReadAsync(journal.ReadBatchesAsync(cancellationToken: _stop)));
        Assert.Equal((segment, HeaderLength), (e.Path, e.Offset));
        Assert.Equal(200, await Journaled.ReadAsync(journal.ReadBatchesAsync(150, cancellationToken: _stop), 150));
    }

    [Fact]
    public async Task RepairAsync_DamagedRecord_CutsBeforeItAndKeepsTheRest()
    {
        await Journaled.MakeAsync(_folder, 200, s_small);
        string[] segments = Journaled.Segments(_folder);
        byte[][] contents = [.. segments.Select(File.ReadAllBytes)];
        Journaled.Flip(segments[1], HeaderLength + 2000);
        List<JournalProgress> told = [];
        JournalRepair repair = await Journal.RepairAsync(_folder, new Told(told), _stop);
        Assert.NotNull(repair.Damage);
        Assert.NotNull(repair.SavedIn);
        Assert.True(repair.CutBytes > 0);
        Assert.NotEmpty(told);
        Assert.Equal(contents[3], await File.ReadAllBytesAsync(Path.Combine(repair.SavedIn, Path.GetFileName(segments[3])), _stop));
        await using (Journal journal = await Journal.OpenAsync(_folder, s_small, _stop))
        {
            Assert.Equal(repair.Damage.Sequence, journal.NextSequence);
            Assert.Equal(repair.Summary.NextSequence, journal.NextSequence);
            await Journaled.AppendAsync(journal, 50);
        }

        Assert.Null((await Journal.RepairAsync(_folder, cancellationToken: _stop)).Damage);
        Assert.Equal(repair.Damage.Sequence + 50, (await Journal.VerifyAsync(_folder, cancellationToken: _stop)).NextSequence);
    }

    [Fact]
    public async Task RepairAsync_MissingSegment_KeepsTheSegmentsBefore()
    {
        await Journaled.MakeAsync(_folder, 200, s_small);
        string[] segments = Journaled.Segments(_folder);
        File.Delete(segments[2]);
        JournalRepair repair = await Journal.RepairAsync(_folder, cancellationToken: _stop);

        // Behind them one begins whose records may have numbers that others had.
        Assert.Equal(segments[..2], Journaled.Segments(_folder)[..^1]);
        Assert.Equal(FirstOf(segments[2]), FirstOf(Journaled.Segments(_folder)[^1]));
        Assert.Equal(segments.Length - 3, Directory.GetFiles(repair.SavedIn!).Length);
        await using Journal journal = await Journal.OpenAsync(_folder, s_small, _stop);
        Assert.Equal(journal.NextSequence, await Journaled.ReadAsync(journal.ReadBatchesAsync(cancellationToken: _stop)));
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task RepairAsync_DamagedHeaderOfTheFirstSegment_KeepsEverythingBesideAndGoesOnWithItsNumber(bool isOnly)
    {
        await Journaled.MakeAsync(_folder, 200, s_small);
        await using (Journal journal = await Journal.OpenAsync(_folder, s_small, _stop))
        {
            await journal.TrimBeforeAsync(isOnly ? 200 : 100, _stop);
        }

        string[] segments = Journaled.Segments(_folder);
        Assert.Equal(isOnly, segments.Length == 1);
        Journaled.Flip(segments[0], 20);
        byte[][] contents = [.. segments.Select(File.ReadAllBytes)];
        JournalRepair repair = await Journal.RepairAsync(_folder, cancellationToken: _stop);
        Assert.Equal((segments[0], 0, FirstOf(segments[0])), (repair.Damage!.Path, repair.Damage.Offset, repair.Damage.Sequence));
        Assert.Equal(contents.Sum(content => content.LongLength), repair.CutBytes);
        Assert.Equal(contents, Journaled.Segments(repair.SavedIn!).Select(File.ReadAllBytes));

        // Numbers before the cut are not given again.
        Assert.Equal((FirstOf(segments[0]), FirstOf(segments[0])), (repair.Summary.FirstSequence, repair.Summary.NextSequence));
        await using Journal again = await Journal.OpenAsync(_folder, s_small, _stop);
        Assert.Equal(FirstOf(segments[0]), again.NextSequence);
        await Journaled.AppendAsync(again, 50);
        Assert.Equal(again.NextSequence, await Journaled.ReadAsync(
            JournalReader.Open(_folder).ReadBatchesAsync(Journal.Oldest, cancellationToken: _stop), FirstOf(segments[0])));
    }

    /// <summary>As when the device is full, or the process is killed.</summary>
    [Fact]
    public async Task RepairAsync_NothingIsLeftAndNoSegmentCanBeMade_TheNextRepairGoesOnWithItsNumber()
    {
        await Journaled.MakeAsync(_folder, 200, s_small);
        await using (Journal journal = await Journal.OpenAsync(_folder, s_small, _stop))
        {
            await journal.TrimBeforeAsync(100, _stop);
        }

        string first = Journaled.Segments(_folder)[0];
        Journaled.Flip(first, 20);
        DirectoryInfo inTheWay = Directory.CreateDirectory(Path.Combine(_folder, "next"));
        Assert.NotNull(await Record.ExceptionAsync(async () => await Journal.RepairAsync(_folder, cancellationToken: _stop)));
        inTheWay.Delete();
        JournalRepair repair = await Journal.RepairAsync(_folder, cancellationToken: _stop);
        Assert.Equal((FirstOf(first), FirstOf(first)), (repair.Summary.FirstSequence, repair.Summary.NextSequence));
    }

    private static long FirstOf(string segment) => long.Parse(Path.GetFileNameWithoutExtension(segment), CultureInfo.InvariantCulture);

    /// <summary>
    /// Flips a byte, expects opening, verifying and reading to throw and nothing to change, and returns the offset that is told.
    /// </summary>
    private async Task<long> DamageAsync(string segment, long offset, long? sequence)
    {
        Journaled.Flip(segment, offset);
        byte[] damaged = await File.ReadAllBytesAsync(segment, _stop);
        bool isOpened = segment != Journaled.Segments(_folder)[^1] && offset >= HeaderLength;
        InvalidJournalException? opened = null;
        if (!isOpened)
        {
            opened = await Assert.ThrowsAsync<InvalidJournalException>(
                async () => await Journal.OpenAsync(_folder, cancellationToken: _stop));
        }

        InvalidJournalException e = await Assert.ThrowsAsync<InvalidJournalException>(
            async () => await Journal.VerifyAsync(_folder, cancellationToken: _stop));
        InvalidJournalException read = await Assert.ThrowsAsync<InvalidJournalException>(
            () => Journaled.ReadAsync(JournalReader.Open(_folder).ReadBatchesAsync(cancellationToken: _stop)));
        Assert.All([opened ?? e, read], one => Assert.Equal((segment, e.Offset, e.Sequence), (one.Path, one.Offset, one.Sequence)));
        Assert.Equal(sequence ?? e.Sequence, e.Sequence);
        Assert.Equal(damaged, await File.ReadAllBytesAsync(segment, _stop));
        return e.Offset;
    }

    /// <summary>Where a record begins: found by its length, as docs/journal-format.md says.</summary>
    private async Task<long> PlaceOfAsync(string segment, long sequence)
    {
        byte[] bytes = await File.ReadAllBytesAsync(segment, _stop);
        int place = HeaderLength;
        while (BitConverter.ToInt64(bytes, place + 24) < sequence || (BitConverter.ToUInt32(bytes, place + 4) & 0x8000_0000) != 0)
        {
            place += ((int)(BitConverter.ToUInt32(bytes, place + 4) & 0x7FFF_FFFF) + 7) & ~7;
        }

        return place;
    }

    private sealed class Told(List<JournalProgress> told) : IProgress<JournalProgress>
    {
        public void Report(JournalProgress value)
        {
            lock (told)
            {
                told.Add(value);
            }
        }
    }
}
