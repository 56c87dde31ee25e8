namespace FilePipelines.Tests;

/// <summary>
/// Random mixtures of operations, done to our writer and to the BCL's over a FileStream: the same file, and the same answers.
/// </summary>
public sealed class WriterOracleTests
{
    public enum Verb
    {
        Advance,
        AdvanceLess,
        Write,
        Flush,
        CancelThenFlush,
        StreamWrite,
    }

    public sealed record Act(Verb Verb, int Size);

    // Most is how many bytes a system call takes, of a writer whose caller writes what it may; 0: the real ones.
    public sealed record Scenario(
        IReadOnlyList<Act> Acts, int MinimumBufferSize, int Pause, FlushGuarantee Guarantee, bool DropsUnflushed, int Most);

    private static Arbitrary<Scenario> Scenarios()
    {
        Gen<int> sizes = Gen.Frequency((3, Gen.Choose(0, 40)), (3, Gen.Choose(41, 5000)), (1, Gen.Choose(5001, 300_000)));
        Gen<Act> act = Gen.Zip(Gen.Elements(Enum.GetValues<Verb>()), sizes).Select(t => new Act(t.Item1, t.Item2));
        return (from acts in Gen.ListOf(act)
                from buffer in Gen.Elements(1, 100, 4096, 65536)
                from pause in Gen.Elements(0, 1, 5000, 1 << 20)
                from guarantee in Gen.Elements(FlushGuarantee.WriteBehind, FlushGuarantee.Written, FlushGuarantee.Durable)
                from drops in Gen.Elements(false, true)
                from most in Gen.Elements(0, 1000, int.MaxValue)
                select new Scenario([.. acts], buffer, pause, guarantee, drops, most)).ToArbitrary();
    }

    [Fact]
    [Trait("Category", FuzzTime.Category)]
    public void AnyMixtureOfOperations_GivesTheFileThatTheBclGives()
        => FuzzTime.Check(
            Prop.ForAll(Scenarios(), scenario => Task.Run(() => CheckAsync(scenario)).WaitAsync(Eventually.Limit).GetAwaiter().GetResult()),
            cases: 100, endSize: 60);

    private static async Task CheckAsync(Scenario scenario)
    {
        using TempFolder folder = new();
        string ours = folder.File("ours");
        string theirs = folder.File("theirs");
        FilePipeWriterOptions options = new()
        {
            MinimumBufferSize = scenario.MinimumBufferSize,
            PauseWriterThreshold = scenario.Pause,
            FlushGuarantee = scenario.Guarantee,
        };
        FilePipeWriter writer = scenario.Most == 0 || OperatingSystem.IsWindows() ? FilePipeWriter.Create(ours, options)
            : new ScriptedCalls { Inline = StoppedClock.AllInlineWrites(), OnWrite = _ => scenario.Most }.Write(ours, options);
        long flushed = await PlayAsync(writer, scenario, isOurs: true);
        Assert.Equal(flushed, writer.Position);
        await writer.CompleteAsync(scenario.DropsUnflushed ? new InvalidOperationException() : null);
        PipeWriter oracle = PipeWriter.Create(new FileStream(theirs, FileMode.Create, FileAccess.Write));
        await PlayAsync(oracle, scenario, isOurs: false);
        await oracle.CompleteAsync(scenario.DropsUnflushed ? new InvalidOperationException() : null);
        Assert.Equal(File.ReadAllBytes(theirs), File.ReadAllBytes(ours));
    }

    /// <summary>How much was flushed in the end.</summary>
    private static async Task<long> PlayAsync(PipeWriter writer, Scenario scenario, bool isOurs)
    {
        long index = 0;
        long flushed = 0;
        foreach (Act act in scenario.Acts)
        {
            switch (act.Verb)
            {
                case Verb.Advance:
                    Pattern.Fill(writer.GetSpan(act.Size)[..act.Size], index);
                    writer.Advance(act.Size);
                    index += act.Size;
                    break;
                case Verb.AdvanceLess:
                    Memory<byte> memory = writer.GetMemory(act.Size);
                    Assert.True(memory.Length >= Math.Max(1, act.Size));
                    int less = Math.Min(memory.Length, act.Size / 2);
                    Pattern.Fill(memory.Span[..less], index);
                    writer.Advance(less);
                    index += less;
                    break;
                case Verb.Write:
                    FlushResult written = await writer.WriteAsync(Pattern.Bytes(act.Size, index));
                    Assert.False(written.IsCanceled || written.IsCompleted);
                    flushed = index += act.Size;
                    break;
                case Verb.Flush:
                    FlushResult result = await writer.FlushAsync();
                    Assert.False(result.IsCanceled || result.IsCompleted);
                    flushed = index;
                    break;
                case Verb.CancelThenFlush:
                    // The BCL's keeps the cancellation for the next flush that has something to write; only ours is canceled here.
                    if (isOurs)
                    {
                        writer.CancelPendingFlush();
                        Assert.True((await writer.FlushAsync()).IsCanceled);
                    }
                    else
                    {
                        await writer.FlushAsync();
                    }

                    flushed = index;
                    break;
                case Verb.StreamWrite:
                    await writer.AsStream(leaveOpen: true).WriteAsync(Pattern.Bytes(act.Size, index));
                    index += act.Size;

                    // PipeWriterStream flushes what it writes.
                    flushed = index;
                    break;
            }

            Assert.True(writer.CanGetUnflushedBytes);
            Assert.Equal(index - flushed, writer.UnflushedBytes);
        }

        return flushed;
    }
}
