using System.Buffers.Binary;

namespace FilePipelines.Tests;

/// <summary>
/// Every moment of a run, and what a power failure then may leave: what was acknowledged is there, and nothing is half there. The calls are
/// recorded from a real run; the states are built by <see cref="CrashModel"/>. PIPELINES_FILE_CRASH_SEED repeats a run,
/// PIPELINES_FILE_CRASH_STATES (100,000) makes it longer: a half of them are of many producers.
/// </summary>
[Trait("Category", StressTime.Category)]
public sealed class CrashTests : FileTests
{
    private const int DefaultStates = 100_000;

    private static readonly int s_states =
        int.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_CRASH_STATES"), CultureInfo.InvariantCulture, out int states)
            ? states : DefaultStates;
    private static readonly int s_seed =
        int.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_CRASH_SEED"), CultureInfo.InvariantCulture, out int seed)
            ? seed : Random.Shared.Next();

    private static readonly byte[][] s_records = [.. Enumerable.Range(0, 1000).Select(RecordOf)];

    private readonly string _path;

    public CrashTests()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It records the Unix system calls.");
        _path = _folder.File("f");
    }

    [Fact]
    public async Task DurableWriter_ManyProducers_LeavesAnUnbrokenPrefixWithEveryAcknowledgedRecord()
    {
        RecordedCalls calls = new();
        int states = await AppendAsync(calls, s_states / 2);
        Assert.True(states >= s_states / 2, $"{states} states");
    }

    [Fact]
    public async Task DurableWriter_EveryMoment_WhatWasAcknowledgedIsThere()
    {
        RecordedCalls calls = new();
        int states = await DurableAsync(calls, s_states / 4);
        Assert.True(states >= s_states / 4, $"{states} states");
    }

    [Theory]
    [InlineData(0), InlineData(95)]
    public async Task Replace_EveryMoment_TheFileIsTheOldOrTheNew(int namelessError)
    {
        RecordedCalls calls = new() { NamelessError = namelessError };
        int states = await ReplaceAsync(calls, s_states / 4);
        Assert.True(states >= s_states / 4, $"{states} states");
    }

    [Theory]
    [InlineData(PlantedMistake.NoFileSync, "append")]
    [InlineData(PlantedMistake.NoFileSync, "durable")]
    [InlineData(PlantedMistake.NoFileSync, "replace")]
    [InlineData(PlantedMistake.NoFolderSync, "durable")]
    [InlineData(PlantedMistake.NoFolderSync, "replace")]
    [InlineData(PlantedMistake.FolderSyncBeforeRename, "replace")]
    public async Task Model_MistakeInTheImplementation_IsCaught(PlantedMistake mistake, string run)
    {
        RecordedCalls calls = new() { Mistake = mistake };
        await Assert.ThrowsAsync<CrashFoundException>(() => run switch
        {
            "append" => AppendAsync(calls, s_states),
            "durable" => DurableAsync(calls, s_states),
            _ => ReplaceAsync(calls, s_states),
        });
    }

    private async Task<int> AppendAsync(RecordedCalls calls, int wanted)
    {
        const int Producers = 6;
        const int RecordsEach = 40;
        FilePipeWriter writer = DurableTests.Write(
            calls, _path, new() { FlushGuarantee = FlushGuarantee.Durable, MinimumBufferSize = 1000 });
        Lock turn = new();
        await Task.WhenAll(Enumerable.Range(0, Producers).Select(producer => Task.Run(
            async () =>
            {
                for (int i = 1; i <= RecordsEach; i++)
                {
                    int id = (producer * RecordsEach) + i;
                    Task flush;
                    lock (turn)
                    {
                        flush = writer.WriteAsync(s_records[id], CancellationToken.None).AsTask();
                    }

                    await flush;
                    calls.Acknowledge(id);
                }
            },
            _stop)));
        await writer.CompleteAsync();

        // What the whole file has is the order that every crash leaves a prefix of.
        List<long> order = Recover(File.ReadAllBytes(_path));
        Assert.Equal(Producers * RecordsEach, order.Count);
        return await EveryMomentAsync(calls, wanted, (model, choose) =>
        {
            List<long> recovered = Recover(model.Crash(_path, choose));
            if (!order.Take(recovered.Count).SequenceEqual(recovered))
            {
                throw new CrashFoundException("What was recovered is no unbroken prefix.");
            }

            HashSet<long> there = [.. recovered];
            if (model.Acknowledged.Where(id => !there.Contains(id)).FirstOrDefault(-1) is long lost and >= 0)
            {
                throw new CrashFoundException($"Record {lost} was acknowledged, and is lost.");
            }

            return Task.CompletedTask;
        });
    }

    private async Task<int> DurableAsync(RecordedCalls calls, int wanted)
    {
        FilePipeWriter writer = DurableTests.Write(
            calls, _path, new() { FlushGuarantee = FlushGuarantee.WriteBehind, MinimumBufferSize = 1000 });
        Random random = new(s_seed);
        long written = 0;
        for (int i = 0; i < 60; i++)
        {
            int length = random.Next(1, 2500);
            await writer.WriteAsync(Pattern.Bytes(length, written), _stop);
            written += length;
            if (random.Next(3) == 0)
            {
                await writer.FlushAsync(FlushGuarantee.Durable, _stop);
                calls.Acknowledge(written);
            }
        }

        await writer.CompleteAsync();
        return await EveryMomentAsync(calls, wanted, (model, choose) =>
        {
            long acknowledged = model.Acknowledged.Count == 0 ? 0 : model.Acknowledged[^1];
            byte[]? content = model.Crash(_path, choose);
            if (content is null
                ? acknowledged > 0
                : content.Length < acknowledged || Pattern.FirstDifference(content.AsSpan(0, (int)acknowledged)) >= 0)
            {
                throw new CrashFoundException($"{acknowledged} bytes were acknowledged, and are not all there.");
            }

            return Task.CompletedTask;
        });
    }

    private async Task<int> ReplaceAsync(RecordedCalls calls, int wanted)
    {
        // The first makes the file, the others replace it; some are given up.
        Random random = new(s_seed);
        Dictionary<int, byte[]> versions = [];
        for (int version = 0; version < 12; version++)
        {
            byte[] content = Pattern.Bytes(random.Next(1, 6000), version * 1_000_000L);
            FilePipeWriter writer = FilePipeWriter.Create(
                _path, new() { Replace = true, FlushGuarantee = FlushGuarantee.Durable, MinimumBufferSize = 1000 }, calls);
            for (int start = 0; start < content.Length; start += 1500)
            {
                writer.Write(content.AsSpan(start, Math.Min(1500, content.Length - start)));
                await writer.FlushAsync(FlushGuarantee.Written, _stop);
            }

            if (version % 4 == 3)
            {
                writer.Dispose();
            }
            else
            {
                versions[version] = content;
                await writer.CompleteAsync();
                calls.Acknowledge(version);
            }
        }

        return await EveryMomentAsync(calls, wanted, (model, choose) =>
        {
            int acknowledged = model.Acknowledged.Count == 0 ? -1 : (int)model.Acknowledged[^1];
            byte[]? content = model.Crash(_path, choose);
            bool isRight = content is null
                ? acknowledged < 0
                : versions.Any(version => version.Key >= acknowledged && content.AsSpan().SequenceEqual(version.Value));
            if (!isRight)
            {
                throw new CrashFoundException($"Version {acknowledged} was acknowledged; what is there is neither that nor the next.");
            }

            return Task.CompletedTask;
        });
    }

    /// <summary>Checks states of every moment: the oldest and the newest, and as many others as make the number that is wanted.</summary>
    private static async Task<int> EveryMomentAsync(RecordedCalls recorded, int wanted, Func<CrashModel, Func<int, int>, Task> checkAsync)
    {
        IReadOnlyList<FileCall> calls = recorded.Calls;
        CrashModel model = new();
        int states = 0;
        int moments = calls.Count + 1;
        int each = Math.Max(2, (wanted + moments - 1) / moments);
        for (int moment = 0; moment <= calls.Count; moment++)
        {
            for (int state = 0; state < each; state++)
            {
                Random random = new(HashOf(s_seed, moment, state));
                try
                {
                    // Nothing of what was not synced, all of it, a little, the half, most: one by one any subset would nearly always be the
                    // half.
                    double share = (state % 5) switch { 0 => 0.02, 1 => 0.5, 2 => 0.98, 3 => 0.2, _ => 0.8 };
                    await checkAsync(model, state switch
                    {
                        0 => _ => 0,
                        1 => count => count - 1,
                        _ => count => random.NextDouble() < share ? count - 1 : random.Next(count),
                    });
                }
                catch (CrashFoundException e)
                {
                    throw new CrashFoundException(
                        $"{e.Message} (moment {moment} of {calls.Count}, state {state}; PIPELINES_FILE_CRASH_SEED={s_seed})");
                }

                states++;
            }

            if (moment < calls.Count)
            {
                model.Apply(calls[moment]);
            }
        }

        return states;
    }

    private static int HashOf(int seed, int moment, int state) => unchecked((((seed * 397) ^ moment) * 7919) ^ state);

    private static byte[] RecordOf(int id)
    {
        byte[] record = new byte[4 + (id * 37 % 700)];
        Pattern.Fill(record, id);
        BinaryPrimitives.WriteInt32LittleEndian(record, id);
        return record;
    }

    /// <summary>The whole records that the content begins with.</summary>
    private static List<long> Recover(ReadOnlySpan<byte> content)
    {
        List<long> ids = [];
        while (content.Length >= sizeof(int) && BinaryPrimitives.ReadInt32LittleEndian(content) is int id && id > 0 && id < s_records.Length
            && content.StartsWith(s_records[id]))
        {
            ids.Add(id);
            content = content[s_records[id].Length..];
        }

        return ids;
    }

    /// <summary>A state that must not be.</summary>
    private sealed class CrashFoundException(string message) : Exception(message);
}
