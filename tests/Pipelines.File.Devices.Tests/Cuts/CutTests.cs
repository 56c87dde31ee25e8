namespace FilePipelines.Devices.Tests;

/// <summary>
/// The power fails at any moment of a recorded run, on real file systems: what was acknowledged is there after they have recovered.
/// PIPELINES_FILE_CUTS (25) says how often for each file system and workload, and PIPELINES_FILE_SEED repeats a run's choices.
/// </summary>
[Trait("Category", StressTime.Category)]
public abstract class CutTests
{
    private readonly FileSystemKind _kind;

    private protected CutTests(FileSystemKind kind) => _kind = kind;

    public static TheoryData<string> Workloads => [.. Workload.Names];

    [Theory]
    [MemberData(nameof(Workloads))]
    public async Task Power_CutAtAnyMoment_LeavesWhatWasAcknowledged(string workload)
    {
        Laboratory.SkipUnlessPossible();
        Assert.SkipUnless(Given.Workload is null || Given.Workload == workload, "PIPELINES_FILE_WORKLOAD names another one.");
        (int promises, int lost, LostPromiseException? first) = await CutAsync(workload, FlushGuarantee.Durable, isControl: false);
        TestContext.Current.SendDiagnosticMessage($"{_kind}, {workload}: {Given.Cuts} cuts, {promises} promises looked for, {lost} broken");
        if (first is not null)
        {
            throw first;
        }
    }

    /// <summary>The control: the same search finds what a weaker guarantee loses.</summary>
    [Theory]
    [MemberData(nameof(Workloads))]
    public async Task Power_CutWithoutDurable_LosesSomethingThatIsFound(string workload)
    {
        Laboratory.SkipUnlessPossible();
        Assert.SkipUnless(Given.Workload is null || Given.Workload == workload, "PIPELINES_FILE_WORKLOAD names another one.");
        (_, int lost, _) = await CutAsync(workload, FlushGuarantee.Written, isControl: true);
        Assert.True(lost > 0, $"PIPELINES_FILE_SEED={Given.Seed}");
    }

    private async Task<(int Promises, int Lost, LostPromiseException? First)> CutAsync(
        string name, FlushGuarantee guarantee, bool isControl)
    {
        Random random = new(Given.Seed);
        Workload workload = Workload.Of(name, guarantee);
        (SortedDictionary<long, byte[]> before, DeviceEvent[] events) = await RecordAsync(workload, random);
        int[] moments = [.. MomentsOf(events, isControl ? 10 : Given.Cuts, random).Order()];
        (int Promises, int Lost, LostPromiseException? First)[] parts = await Task.WhenAll(Enumerable.Range(0, _kind.Copies).Select(
            part => Task.Run(() => CutPartAsync(part, workload, before, events, moments))));
        return (
            parts.Sum(static part => part.Promises),
            parts.Sum(static part => part.Lost),
            parts.Select(static part => part.First).FirstOrDefault(static first => first is not null));
    }

    /// <summary>Random ones; every second one is that right behind a promise, before anything else can have kept it.</summary>
    private static IEnumerable<int> MomentsOf(DeviceEvent[] events, int count, Random random)
    {
        int[] promised = [.. Enumerable.Range(0, events.Length).Where(i => events[i].Promise is not null)];
        return Enumerable.Range(0, count).Select(
            i => i % 2 == 0 || promised.Length == 0 ? random.Next(events.Length + 1) : promised[random.Next(promised.Length)] + 1);
    }

    private async Task<(int Promises, int Lost, LostPromiseException? First)> CutPartAsync(
        int part, Workload workload, SortedDictionary<long, byte[]> before, DeviceEvent[] events, int[] moments)
    {
        Random random = new(Given.Seed + part);
        using PowerCut cut = new(_kind, before, events);
        int promises = 0;
        int lost = 0;
        LostPromiseException? first = null;
        foreach (int moment in moments.Where((_, i) => i % _kind.Copies == part))
        {
            try
            {
                promises += await cut.CutAsync(moment, random, workload.CheckAsync);
            }
            catch (LostPromiseException e)
            {
                lost++;
                first ??= new LostPromiseException(
                    $"{e.Message} ({_kind}, {workload.GetType().Name}: cut before {moment} of {events.Length}; "
                        + $"PIPELINES_FILE_SEED={Given.Seed})",
                    e);
            }
        }

        return (promises, lost, first);
    }

    private async Task<(SortedDictionary<long, byte[]> Before, DeviceEvent[] Events)> RecordAsync(Workload workload, Random random)
    {
        using Laboratory laboratory = Laboratory.Open(_kind);

        // A disk that is sometimes slow: more callers wait for one flush, and more is written beside it.
        Random delays = new(Given.Seed);
        laboratory.Disk.Answer = request =>
        {
            if (request.Kind == DeviceRequestKind.Flush)
            {
                Thread.Sleep(delays.Next(4) == 0 ? 2 : 0);
            }

            return DeviceAnswer.Done;
        };
        await workload.RunAsync(laboratory.Folder, laboratory.Disk.Acknowledge, random);
        return (laboratory.Before, laboratory.Disk.Recorded);
    }
}
