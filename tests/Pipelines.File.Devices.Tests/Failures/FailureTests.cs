namespace FileDevicesTests;

/// <summary>
/// A disk that begins to fail at a random request, under real file systems. PIPELINES_FILE_FAILURES (2) says how many disks for each file
/// system and way of failing, and PIPELINES_FILE_SEED repeats a run's choices.
/// </summary>
[Trait("Category", StressTime.Category)]
public abstract class FailureTests
{
    // About as many requests as the writers of one run make.
    private const int Requests = 250;

    private const int DisksAfterLoss = 24;

    private readonly FileSystemKind _kind;

    private protected FailureTests(FileSystemKind kind) => _kind = kind;

    [Theory]
    [InlineData("everything", Libc.Eio)]
    [InlineData("everything", Libc.Enospc)]
    [InlineData("flushes", Libc.Eio)]
    [InlineData("one write", Libc.Eio)]
    [InlineData("one write", Libc.Enospc)]
    [InlineData("a range", Libc.Eio)]
    [InlineData("torn", Libc.Eio)]
    public async Task Disk_BeginsToFail_WritersFailForGoodAndKeepWhatTheyHaveAcknowledged(string what, int error)
    {
        Laboratory.SkipUnlessPossible();
        int failed = 0;
        int disks = Given.Failures;
        List<string> losses = [];
        for (int run = 0; run < disks; run++)
        {
            Random random = new(Given.Seed + run);
            string name = $"{_kind}, {what}, run {run}: PIPELINES_FILE_SEED={Given.Seed}.";
            try
            {
                failed += await FailAsync(what, error, random);
            }
            catch (LostPromiseException e) when (what is not ("everything" or "flushes"))
            {
                // If writes fail and flushes do not, the kernel itself answers 0 to a few syncs whose bytes are lost: the one that comes
                // between the end of a journal and the moment at which the file system notices it. By hand it is the same. More disks
                // show that these are few.
                losses.Add($"{name} {e.Message}");
                disks = Math.Max(disks, DisksAfterLoss);
            }
            catch (Exception e)
            {
                throw new InvalidOperationException($"{name} {e.Message}", e);
            }
        }

        TestContext.Current.SendDiagnosticMessage(
            $"{_kind}, {what} fails with {error}: {disks} disks, {failed} writers failed, {losses.Count} disks lost what was synced");
        Assert.True(losses.Count <= disks / 2, string.Join('\n', losses));
    }

    /// <summary>
    /// Not a test of the library: how often the kernel itself answers 0 to an fdatasync(2) whose bytes are lost. With -explicit only.
    /// </summary>
    [Theory(Explicit = true)]
    [InlineData("everything")]
    [InlineData("one write")]
    [InlineData("a range")]
    [InlineData("torn")]
    public async Task Disk_BeginsToFail_ByHand(string what)
    {
        Laboratory.SkipUnlessPossible();
        int lost = 0;
        for (int run = 0; run < Given.Failures; run++)
        {
            Random random = new(Given.Seed + run);
            using Laboratory laboratory = Laboratory.Open(_kind);
            HandWriter[] writers = [.. Enumerable.Range(0, 5).Select(
                i => new HandWriter(laboratory.Folder, $"{i}", laboratory.Disk.Acknowledge))];
            laboratory.Disk.Answer = Failing(what, Libc.Eio, random, laboratory.Disk);
            await Task.WhenAll(writers.Select(writer => Task.Run(() => writer.Run(new Random(random.Next())))));
            laboratory.Unmount();
            DeviceEvent[] events = laboratory.Disk.Recorded;
            using PowerCut cut = new(_kind, laboratory.Before, events);
            try
            {
                await cut.CutAsync(events.Length, random, (recovered, promises) =>
                {
                    lost += writers.Count(writer => writer.Lost(recovered, promises.GetValueOrDefault(writer.Name)) > 0);
                    return Task.CompletedTask;
                });
            }
            catch (MountException)
            {
                // Nothing is there at all.
            }
        }

        TestContext.Current.SendDiagnosticMessage(
            $"{_kind}, {what} fails, by hand: {lost} files of {Given.Failures} disks have lost synced bytes");
    }

    private async Task<int> FailAsync(string what, int error, Random random)
    {
        using Laboratory laboratory = Laboratory.Open(_kind);
        RecordingDisk disk = laboratory.Disk;
        string folder = laboratory.Folder;
        File.WriteAllBytes(Path.Combine(folder, "appended"), []);
        FailingWriter[] writers =
        [
            new(folder, "growing", new(), disk.Acknowledge),
            new(folder, "preallocated", new() { PreallocationSize = 4 << 20 }, disk.Acknowledge),
            new(folder, "appended", new() { Mode = FileMode.Append }, disk.Acknowledge),
            new(folder, "dropped", new() { Caching = FileCaching.DropBehind }, disk.Acknowledge),
            new(folder, "replaced", new() { Replace = true }, (name, value) =>
            {
                // Before it is completed it has no name.
                if (value == 4 << 20)
                {
                    disk.Acknowledge(name, value);
                }
            }),
        ];
        disk.Answer = Failing(what, error, random, disk);
        await Task.WhenAll(writers.Select(writer => Task.Run(() => writer.RunAsync(new Random(random.Next())))));
        await Eventually.TrueAsync(() => OpenHandles.Below(folder) == 0);
        laboratory.Unmount();
        Assert.Empty(writers.SelectMany(static writer => writer.Wrongs));

        // The disk as it is, and one that also loses its power.
        DeviceEvent[] events = disk.Recorded;
        using PowerCut cut = new(_kind, laboratory.Before, events);
        try
        {
            await cut.CutAsync(events.Length, random, (recovered, promises) =>
            {
                foreach (FailingWriter writer in writers)
                {
                    writer.Check(recovered, promises.GetValueOrDefault(writer.Name));
                }

                return Task.CompletedTask;
            });
        }
        catch (MountException e)
        {
            // A superblock that was torn and never written again: the file system itself is lost, and says so.
            TestContext.Current.SendDiagnosticMessage($"{_kind}, {what}: {e.Message}");
        }

        return writers.Count(static writer => writer.Error is not null);
    }

    private static Func<DeviceRequest, DeviceAnswer> Failing(string what, int error, Random random, RecordingDisk disk)
    {
        int writes = disk.Requests(DeviceRequestKind.Write);
        int flushes = disk.Requests(DeviceRequestKind.Flush);
        int first = writes + random.Next(1, Requests);
        int firstFlush = flushes + random.Next(1, Requests / 10);
        long from = random.NextInt64(disk.Length);
        long to = from + (disk.Length / 4);
        bool hasBegun = false;
        bool isOver = false;
        return request =>
        {
            hasBegun |= request.Kind == DeviceRequestKind.Write && request.Number >= first;

            bool isWrite = request.Kind == DeviceRequestKind.Write;
            bool fails = what switch
            {
                "everything" => hasBegun && request.Kind != DeviceRequestKind.Read,
                "flushes" => request.Kind == DeviceRequestKind.Flush && request.Number >= firstFlush,
                "a range" => isWrite && hasBegun && request.Offset < to && request.Offset + request.Length > from,
                "torn" => isWrite && hasBegun,
                _ => isWrite && hasBegun && !isOver,
            };
            isOver |= fails;
            int torn = fails && what == "torn" ? random.Next((request.Length / 512) + 1) * 512 : 0;
            return fails ? new DeviceAnswer(error, torn) : DeviceAnswer.Done;
        };
    }
}
