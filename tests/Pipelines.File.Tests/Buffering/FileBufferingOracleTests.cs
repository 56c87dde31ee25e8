namespace FilePipelines.Tests;

/// <summary>
/// Random mixtures of calls, made on our pipe and on .NET's without a threshold. A read of ours may return a part of what the other one
/// returns, if it comes from the file; everything else is compared: when a read completes, with what, whether canceled or completed.
/// </summary>
public sealed class FileBufferingOracleTests
{
    public enum Verb
    {
        Write,
        Advance,
        Flush,
        Read,
        ReadAtLeast,
        TryRead,
        CancelRead,
        CancelFlush,
        CopyFromAnotherReader,
    }

    /// <summary>What to do, how many bytes it is about, and how much of what comes to consume and examine, in percent.</summary>
    public sealed record Act(Verb Verb, int Size, int Consumed, int Examined);

    public sealed record Scenario(IReadOnlyList<Act> Acts, int Threshold, bool Keeps, bool OwnPool, bool Fails)
    {
        public override string ToString()
            => $"{Threshold} {Keeps} {OwnPool} {Fails}: "
                + string.Join(", ", Acts.Select(act => $"{act.Verb} {act.Size} {act.Consumed} {act.Examined}"));
    }

    [Fact]
    [Trait("Category", FuzzTime.Category)]
    public void AnyMixtureOfCalls_GivesWhatThePipeGives()
        => FuzzTime.Check(
            Prop.ForAll(Scenarios(), scenario => Task.Run(() => CheckAsync(scenario)).WaitAsync(Eventually.Limit).GetAwaiter().GetResult()),
            cases: 200, endSize: 60);

    private static Arbitrary<Scenario> Scenarios()
    {
        Gen<int> percent = Gen.Frequency((2, Gen.Constant(0)), (3, Gen.Constant(100)), (3, Gen.Choose(0, 100)));
        Gen<Act> act = from verb in Gen.Elements(Enum.GetValues<Verb>())
                       from size in Gen.Frequency((1, Gen.Constant(0)), (3, Gen.Choose(1, 100)), (2, Gen.Choose(100, 20_000)),
                           (1, Gen.Choose(20_000, 300_000)))
                       from consumed in percent
                       from examined in percent
                       select new Act(verb, size, consumed, examined);
        return (from acts in Gen.ListOf(act)
                from threshold in Gen.Elements(0, 100, 10_000, 65_536, 10_000_000)
                from keeps in Gen.Elements(true, false)
                from ownPool in Gen.Elements(true, false)
                from fails in Gen.Elements(true, false)
                select new Scenario([.. acts], threshold, keeps, ownPool, fails)).ToArbitrary();
    }

    private static async Task CheckAsync(Scenario scenario)
    {
        using TempFolder folder = new();
        CheckedPool? pool = scenario.OwnPool ? null : new CheckedPool();
        FileBufferingPipe ours = new(new()
        {
            MemoryThreshold = scenario.Threshold,
            Keep = scenario.Keeps,
            Pool = pool,
            Folder = folder.Path,
        });
        Pipe oracle = new(new PipeOptions(pauseWriterThreshold: 0, useSynchronizationContext: false));
        long written = 0;
        long flushed = 0;
        long consumed = 0;
        long examined = 0;
        foreach (Act act in scenario.Acts)
        {
            switch (act.Verb)
            {
                case Verb.Write or Verb.Advance:
                    Write(ours.Writer, written, act.Size);
                    Write(oracle.Writer, written, act.Size);
                    written += act.Size;
                    Assert.Equal(written - flushed, ours.Writer.UnflushedBytes);
                    if (act.Verb == Verb.Write)
                    {
                        await FlushBothAsync();
                    }

                    break;
                case Verb.Flush:
                    await FlushBothAsync();
                    break;
                case Verb.CancelFlush:
                    ours.Writer.CancelPendingFlush();
                    oracle.Writer.CancelPendingFlush();
                    await FlushBothAsync();
                    break;
                case Verb.Read or Verb.ReadAtLeast:
                    // After canceled reads, ReadAtLeastAsync of .NET's pipe waits for bytes that are there.
                    bool isAny = act.Verb == Verb.Read || flushed == examined;
                    int least = isAny ? 0 : (int)Math.Min(act.Size, flushed - consumed);
                    ValueTask<ReadResult> other = oracle.Reader.ReadAsync();
                    Task<ReadResult> mine = isAny ? ours.Reader.ReadAsync().AsTask() : ours.Reader.ReadAtLeastAsync(least).AsTask();
                    if (!other.IsCompleted)
                    {
                        Assert.False(mine.IsCompleted, $"{act} {written} {flushed} {consumed} {examined}");
                        oracle.Reader.CancelPendingRead();
                        ours.Reader.CancelPendingRead();
                    }

                    ReadResult result = await mine;
                    Assert.True(result.IsCanceled || result.Buffer.Length >= least);
                    Advance(await other, result, act);
                    break;
                case Verb.TryRead:
                    bool isThere = oracle.Reader.TryRead(out ReadResult tried);
                    bool isMine = ours.Reader.TryRead(out ReadResult got);
                    Assert.True(isThere || !isMine);
                    if (isThere)
                    {
                        // In the file it is not in memory: TryRead makes no system call.
                        Advance(tried, isMine ? got : await ours.Reader.ReadAsync(), act);
                    }

                    break;
                case Verb.CancelRead:
                    oracle.Reader.CancelPendingRead();
                    ours.Reader.CancelPendingRead();
                    Advance(await oracle.Reader.ReadAsync(), await ours.Reader.ReadAsync(), act);
                    break;
                case Verb.CopyFromAnotherReader when scenario.Keeps && flushed > 0:
                    PipeReader another = ours.OpenReader(act.Size % flushed);
                    ReadResult read = await another.ReadAsync();
                    Check(read, act.Size % flushed);
                    Assert.False(read.Buffer.IsEmpty);
                    another.AdvanceTo(read.Buffer.End);
                    await another.CompleteAsync();
                    break;
            }
        }

        InvalidDataException error = new();
        await ours.Writer.CompleteAsync(scenario.Fails ? error : null);
        flushed = scenario.Fails ? flushed : written;
        Assert.Equal(flushed, ours.Length);
        while (true)
        {
            if (scenario.Fails && examined == flushed)
            {
                Assert.Same(error, await Assert.ThrowsAsync<InvalidDataException>(async () => await ours.Reader.ReadAsync()));
                break;
            }

            ReadResult result = await ours.Reader.ReadAsync();
            Check(result, consumed);
            Assert.Equal(result.Buffer.Length == flushed - consumed && !scenario.Fails, result.IsCompleted);
            examined = consumed += result.Buffer.Length;
            ours.Reader.AdvanceTo(result.Buffer.End);
            if (result.IsCompleted)
            {
                break;
            }
        }

        if (scenario.Keeps && !scenario.Fails)
        {
            using MemoryStream all = new();
            await ours.AsStream().CopyToAsync(all);
            Assert.True(all.ToArray().AsSpan().SequenceEqual(Pattern.Bytes((int)flushed)));
        }

        await ours.DisposeAsync();
        Assert.Empty(Directory.EnumerateFileSystemEntries(folder.Path));
        if (pool is not null)
        {
            Assert.Equal(0, pool.ReturnedTwice);
            Assert.Equal(0, pool.ReturnedPinned);
            await Eventually.TrueAsync(() => pool.Rented == 0);
        }

        async Task FlushBothAsync()
        {
            flushed = written;
            FlushResult other = await oracle.Writer.FlushAsync();
            FlushResult mine = await ours.Writer.FlushAsync();
            Assert.Equal((other.IsCanceled, other.IsCompleted), (mine.IsCanceled, mine.IsCompleted));
            Assert.Equal(flushed, ours.Length);
        }

        void Advance(ReadResult other, ReadResult mine, Act act)
        {
            Check(mine, consumed);
            Assert.Equal(other.IsCanceled, mine.IsCanceled);
            Assert.True(mine.Buffer.Length <= other.Buffer.Length);
            Assert.True(mine.IsCanceled || mine.Buffer.Length > examined - consumed);
            long used = mine.Buffer.Length * act.Consumed / 100;

            // .NET's does not take an examined position before the last one.
            long seen = Math.Max(mine.Buffer.Length * act.Examined / 100, Math.Max(used, examined - consumed));
            Assert.False(mine.IsCompleted);
            oracle.Reader.AdvanceTo(other.Buffer.GetPosition(used), other.Buffer.GetPosition(Math.Min(seen, other.Buffer.Length)));
            if (mine.Buffer.IsEmpty && seen > 0)
            {
                // A canceled read from the file has returned nothing.
                ours.Reader.AdvanceTo(mine.Buffer.Start);
            }
            else
            {
                ours.Reader.AdvanceTo(mine.Buffer.GetPosition(used), mine.Buffer.GetPosition(seen));
            }

            consumed += used;
            examined = consumed - used + seen;
        }

        static void Check(ReadResult result, long offset)
        {
            foreach (ReadOnlyMemory<byte> memory in result.Buffer)
            {
                Assert.Equal(-1, Pattern.FirstDifference(memory.Span, offset));
                offset += memory.Length;
            }
        }
    }

    private static void Write(PipeWriter writer, long offset, int count)
    {
        while (count > 0)
        {
            Span<byte> room = writer.GetSpan();
            int length = Math.Min(room.Length, count);
            Pattern.Fill(room[..length], offset);
            writer.Advance(length);
            offset += length;
            count -= length;
        }
    }
}
