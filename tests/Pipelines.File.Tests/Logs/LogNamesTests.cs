namespace FilePipelines.Tests;

/// <summary>Moments between the search, which hashes files and may take long, and the tail, which reads meanwhile.</summary>
public sealed class LogNamesTests : FileTests
{
    private readonly string _log;

    public LogNamesTests() => _log = _folder.File("log");

    [Fact]
    public async Task Update_UnderWay_HoldsUpNeitherStatisticsNorTheTail()
    {
        LogNames names = new(_log, new LogFollowerOptions(), checkpoint: null, isLate: false);
        using GrowingFile file = new(_log, "1\n2\n");
        names.Search();
        LogFile first = names.TryTake()!;
        (long end, ulong hash) = first.HashAt(long.MaxValue, CancellationToken.None);
        File.Copy(_log, _log + ".1");
        file.Cut(0);
        file.Append("3\n");
        names.OnCut(first, new FileCheckpoint(first.Identity, end) { ContentHash = hash });
        int asked = 0;
        await Task.Run(() => names.Update(names.Listing(), () =>
        {
            // The search is in the midst of its work.
            Task asking = Task.Run(() => (names.WaitingBytes, names.IsOver(first, 0), names.TryTake()));
            asked += asking.Wait(TimeSpan.FromSeconds(10)) ? 1 : 0;
            return names.Listing();
        }, CancellationToken.None), TestContext.Current.CancellationToken);
        names.Close();
        Assert.Equal(1, asked);
    }

    /// <summary>What was read is in its copy, which has less. Nothing is missing, though the log lost its name, too.</summary>
    [Fact]
    public void Update_TruncatedFileWasRenamedToo_GoesOnBehindItsCopy()
    {
        LogNames names = new(_log, new LogFollowerOptions(), checkpoint: null, isLate: false);
        using GrowingFile file = new(_log, new string('1', 2000) + "\n");
        names.Search();
        LogFile first = names.TryTake()!;
        File.Copy(_log, _log + ".1");

        // As if it was put there: else it says by its age that the highest number is the newest, unless all of this takes one tick.
        File.SetLastWriteTimeUtc(_log + ".1", DateTime.UtcNow.AddHours(-1));
        file.Append("2\n");
        (long end, ulong hash) = first.HashAt(long.MaxValue, CancellationToken.None);
        file.Cut(0);
        file.Append("3\n");
        names.OnCut(first, new FileCheckpoint(first.Identity, end) { ContentHash = hash });
        File.Move(_log + ".1", _log + ".2");
        File.Move(_log, _log + ".1");
        File.WriteAllText(_log, "4\n");
        names.Search();
        using LogFile second = names.TryTake()!;
        using LogFile third = names.TryTake()!;
        Assert.Equal((_log + ".1", false, _log, false), (second.Name.Path, second.IsAfterGap, third.Name.Path, third.IsAfterGap));
        names.Close();
    }

    /// <summary>Files that truncating the log has left are final, and their lines have the log's checkpoints.</summary>
    [Fact]
    public void Update_FileIsBackAndWasTruncatedTwice_ReadsBothCopiesAsSuch()
    {
        LogNames names = new(_log, new LogFollowerOptions(), checkpoint: null, isLate: false);
        using GrowingFile file = new(_log, "1\n");
        names.Search();
        LogFile first = names.TryTake()!;
        Assert.SkipUnless(first.Identity.Created != 0, "The system does not tell when a file was made.");
        (long end, ulong hash) = first.HashAt(long.MaxValue, CancellationToken.None);
        string away = _folder.File("away");
        File.Move(_log, away);
        names.Search();
        names.OnLeft(first, new FileCheckpoint(first.Identity, end) { ContentHash = hash });
        file.Append("2\n");
        File.Copy(away, _log + ".2");
        file.Cut(0);
        file.Append("3\n");
        File.Copy(away, _log + ".1");
        file.Cut(0);
        file.Append("4\n");
        File.Move(away, _log);
        names.Search();
        foreach (string path in (string[])[_log + ".2", _log + ".1", _log])
        {
            using LogFile next = names.TryTake()!;
            Assert.Equal((path, path != _log, first.Identity), (next.Name.Path, next.IsFinal, next.Identity));
        }

        names.Close();
    }

    /// <summary>What was read is in the file no more, so what follows there may not be the other half of its last line.</summary>
    [Fact]
    public void BeginsAs_TheFileWasTruncatedSinceTheRead_IsFalse()
    {
        LogNames names = new(_log, new LogFollowerOptions(), checkpoint: null, isLate: false);
        using GrowingFile file = new(_log, "1\n2\n");
        names.Search();
        using LogFile log = names.TryTake()!;
        ReadOnlySequence<byte> read = new(log.ReadBeginning());
        Assert.True(log.BeginsAs(read));
        file.Cut(0);
        file.Append("3\n");
        Assert.False(log.BeginsAs(read));
    }
}
