namespace FilePipelines.Tests;

/// <summary>What is asked of the names of a log while a search hashes files, which takes long if they are compressed.</summary>
public sealed class LogNamesLockTests : FileTests
{
    private readonly string _log;

    public LogNamesLockTests() => _log = _folder.File("log");

    [Fact]
    public async Task Update_UnderWay_HoldsUpNeitherStatisticsNorTheTail()
    {
        LogNames names = new(_log, new LogFollowerOptions(), checkpoint: null, isLate: false);
        using GrowingFile file = new(_log, "1\n2\n");
        FolderNames folder = new(_folder.Path, TimeProvider.System);
        names.Update(Take(), Take, CancellationToken.None);
        LogFile first = names.TryTake()!;
        (long end, ulong hash) = first.HashAt(long.MaxValue, CancellationToken.None);
        File.Copy(_log, _log + ".1");
        file.Cut(0);
        file.Append("3\n");
        names.OnCut(first, new FileCheckpoint(first.Identity, end) { ContentHash = hash });
        int asked = 0;
        await Task.Run(() => names.Update(Take(), () =>
        {
            // The search is in the midst of its work.
            Task asking = Task.Run(() => (names.WaitingBytes, names.IsOver(first, 0), names.TryTake()));
            asked += asking.Wait(TimeSpan.FromSeconds(10)) ? 1 : 0;
            return Take();
        }, CancellationToken.None), TestContext.Current.CancellationToken);
        names.Close();
        Assert.Equal(1, asked);

        LogListing Take()
        {
            folder.Look(isSure: true);
            return LogListing.Take(_log, names.Rotated, _ => folder);
        }
    }
}
