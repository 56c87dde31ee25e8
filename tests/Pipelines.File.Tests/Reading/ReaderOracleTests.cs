using Pipelines.File.Reading;

namespace FilePipelines.Tests;

/// <summary>
/// Random mixtures of operations, done to our reader and to the BCL's over a FileStream. How many bytes one read brings is each reader's
/// own affair; what is compared is the stream of consumed bytes, where it ends, and what each operation may and may not return.
/// </summary>
public sealed class ReaderOracleTests
{
    /// <summary>The maximum number of reads of a case: each may be one change of threads, which takes long on a busy machine.</summary>
    private const int MaxReads = 2000;

    public enum Verb
    {
        Read,
        ReadAtLeast,
        TryRead,
        CancelThenRead,
        StreamRead,
        ReadWithCanceledToken,
    }

    /// <summary>What to do, and how much of what comes to consume and examine, in percent.</summary>
    public sealed record Act(Verb Verb, int Size, int Consumed, int Examined);

    public sealed record Scenario(
        IReadOnlyList<Act> Acts, int FileSize, int BufferSize, long ReadAhead, long Offset, long? Length, bool OwnPool, bool EndsWithCopy);

    private static Arbitrary<Scenario> Scenarios()
    {
        Gen<int> percent = Gen.Frequency((2, Gen.Constant(0)), (2, Gen.Constant(100)), (3, Gen.Choose(0, 100)));
        Gen<Act> act = from verb in Gen.Elements(Enum.GetValues<Verb>())
                       from size in Gen.Frequency((3, Gen.Choose(0, 100)), (2, Gen.Choose(100, 20_000)), (1, Gen.Choose(20_000, 700_000)))
                       from consumed in percent
                       from examined in percent
                       select new Act(verb, size, consumed, examined);
        return (from acts in Gen.ListOf(act)
                from fileSize in Gen.Frequency(
                    (1, Gen.Constant(0)), (3, Gen.Choose(1, 5000)), (2, Gen.Choose(5000, 300_000)), (1, Gen.Choose(300_000, 3_000_000)))
                from bufferSize in Gen.Elements(1, 7, 256, 4096, 5000, 65_536, 1 << 20)
                from readAhead in Gen.Elements(0L, 0L, 1L, 10_000L, 1L << 20)
                from offset in Gen.Frequency((3, Gen.Constant(0L)), (1, Gen.Choose(0, 6000).Select(i => (long)i)))
                from length in Gen.Frequency((3, Gen.Constant<long?>(null)), (1, Gen.Choose(0, 6000).Select(i => (long?)i)),
                    (1, Gen.Choose(0, 400_000).Select(i => (long?)i)))
                from ownPool in Gen.Elements(true, false)
                from copy in Gen.Elements(true, false)
                select new Scenario([.. acts], (int)Math.Min(fileSize, (long)MaxReads * bufferSize), bufferSize, readAhead, offset, length,
                    ownPool, copy)).ToArbitrary();
    }

    [Fact]
    [Trait("Category", FuzzTime.Category)]
    public void AnyMixtureOfOperations_GivesTheBytesThatTheBclGives()
        => FuzzTime.Check(
            Prop.ForAll(Scenarios(), scenario => Task.Run(() => CheckAsync(scenario)).WaitAsync(Eventually.Limit).GetAwaiter().GetResult()),
            cases: 150, endSize: 50);

    private static async Task CheckAsync(Scenario scenario)
    {
        using TempFolder folder = new();
        byte[] content = Pattern.Bytes(scenario.FileSize);
        string path = folder.File("f", content);
        int start = (int)Math.Min(scenario.Offset, content.Length);
        int end = (int)Math.Min(start + (scenario.Length ?? int.MaxValue), content.Length);

        CheckedPool? pool = scenario.OwnPool ? null : new CheckedPool();
        FilePipeReader ours = FilePipeReader.Create(path, new FilePipeReaderOptions
        {
            BufferSize = scenario.BufferSize,
            PauseReadAheadThreshold = scenario.ReadAhead,
            Offset = scenario.Offset,
            Length = scenario.Length,
            Pool = pool,
        });
        byte[] read = await PlayAsync(ours, scenario, () => Assert.InRange(ours.Position, scenario.Offset, Math.Max(scenario.Offset, end)));
        Assert.Equal(Math.Max(scenario.Offset, end), ours.Position);
        await ours.CompleteAsync();
        Assert.True(content.AsSpan(start, end - start).SequenceEqual(read),
            $"{read.Length} bytes, wrong or misplaced; expected {end - start}");
        if (pool is not null)
        {
            Assert.Equal(0, pool.ReturnedTwice);
            Assert.Equal(0, pool.ReturnedPinned);
            Assert.True(SpinWait.SpinUntil(() => pool.Rented == 0, Eventually.Limit),
                $"{pool.Rented} pieces of memory were not given back");
        }

        // The oracle's turn: what it gives has to be the same.
        using FileStream stream = new(path, FileMode.Open, FileAccess.Read);
        stream.Position = start;
        PipeReader oracle = PipeReader.Create(scenario.Length is null ? stream : new MemoryStream(content, start, end - start),
            new StreamPipeReaderOptions(bufferSize: scenario.BufferSize, minimumReadSize: 1));
        byte[] expected = await PlayAsync(oracle, scenario, () => { });
        await oracle.CompleteAsync();
        Assert.True(expected.AsSpan().SequenceEqual(read), $"BCL: {expected.Length} bytes, "
            + $"first difference {Pattern.FirstDifference(expected, start)}, ours {read.Length}; {string.Join(" ", scenario.Acts)}");
    }

    /// <summary>Does everything, then reads the rest; every byte consumed, in order.</summary>
    private static async Task<byte[]> PlayAsync(PipeReader reader, Scenario scenario, Action check)
    {
        ArrayBufferWriter<byte> consumed = new();
        foreach (Act act in scenario.Acts)
        {
            switch (act.Verb)
            {
                case Verb.Read:
                    Advance(await reader.ReadAsync(), act, isCanceled: false);
                    break;
                case Verb.ReadAtLeast:
                    ReadResult atLeast = await reader.ReadAtLeastAsync(act.Size);
                    Assert.True(atLeast.IsCompleted || atLeast.Buffer.Length >= act.Size);
                    Advance(atLeast, act, isCanceled: false);
                    break;
                case Verb.TryRead:
                    if (reader.TryRead(out ReadResult tried))
                    {
                        Advance(tried, act, isCanceled: false);
                    }

                    break;
                case Verb.CancelThenRead:
                    reader.CancelPendingRead();
                    Advance(await reader.ReadAsync(), act, isCanceled: true);
                    break;
                case Verb.StreamRead:
                    byte[] buffer = new byte[act.Size];
                    int length = await reader.AsStream(leaveOpen: true).ReadAsync(buffer);
                    consumed.Write(buffer.AsSpan(0, length));
                    break;
                case Verb.ReadWithCanceledToken:
                    await Assert.ThrowsAnyAsync<OperationCanceledException>(
                        async () => await reader.ReadAsync(new CancellationToken(canceled: true)));
                    break;
            }

            check();
        }

        if (scenario.EndsWithCopy)
        {
            MemoryStream rest = new();
            PipeWriter destination = PipeWriter.Create(rest);
            await reader.CopyToAsync(destination);
            await destination.CompleteAsync();
            consumed.Write(rest.ToArray());
            if (reader is not FilePipeReader)
            {
                // The BCL's would now return again what it had buffered and has copied; ours is at its end, which the loop below checks.
                return consumed.WrittenSpan.ToArray();
            }
        }

        // One segment holds a whole read. A size under 512 is that of each segment.
        int least = scenario.BufferSize >= 512 ? ReadBuffer.BytesPerRead : 0;
        int maxSegment = Math.Max(scenario.BufferSize, least);
        while (true)
        {
            ReadResult result = await reader.ReadAsync();
            foreach (ReadOnlyMemory<byte> memory in result.Buffer)
            {
                Assert.True(reader is not FilePipeReader || (memory.Length > 0 && memory.Length <= maxSegment));
                consumed.Write(memory.Span);
            }

            reader.AdvanceTo(result.Buffer.End);
            if (result.IsCompleted)
            {
                break;
            }
        }

        return consumed.WrittenSpan.ToArray();

        void Advance(ReadResult result, Act act, bool isCanceled)
        {
            Assert.Equal(isCanceled, result.IsCanceled);
            ReadOnlySequence<byte> buffer = result.Buffer;
            SequencePosition to = buffer.GetPosition(buffer.Length * act.Consumed / 100);
            SequencePosition examined = buffer.GetPosition(buffer.Length * Math.Max(act.Consumed, act.Examined) / 100);
            foreach (ReadOnlyMemory<byte> memory in buffer.Slice(0, to))
            {
                consumed.Write(memory.Span);
            }

            reader.AdvanceTo(to, examined);
        }
    }
}
