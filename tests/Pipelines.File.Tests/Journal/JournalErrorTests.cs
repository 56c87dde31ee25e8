namespace FilePipelines.Tests;

/// <summary>Errors of the device: nothing is acknowledged after the first, and what was acknowledged before stays.</summary>
public sealed class JournalErrorTests
{
    private const int StatementLength = 32;

    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    [Theory]
    [InlineData("ext4", 16)]
    [InlineData("xfs", 320)]
    [InlineData("btrfs", 128)]
    public async Task AppendAsync_DiskIsFull_KeepsWhatWasAcknowledgedAndGoesOnAfterThereIsRoom(string fileSystem, int mebibytes)
    {
        // The least that its mkfs makes.
        using LoopDisk disk = LoopDisk.Make(fileSystem, (long)mebibytes << 20);
        if (fileSystem == "xfs")
        {
            disk.LeaveRoom(32 << 20);
        }

        string folder = disk.PathOf("journal");
        JournalOptions options = new() { SegmentSize = 1 << 20 };
        List<long> acknowledged = [];
        await using (Journal journal = await Journal.OpenAsync(folder, options, _stop))
        {
            byte[] record = new byte[100_000];
            IOException? full = null;
            while (full is null)
            {
                Task<long>[] appends = [.. Enumerable.Range(0, 8).Select(_ => journal.AppendAsync(record, _stop).AsTask())];
                foreach (Task<long> append in appends)
                {
                    try
                    {
                        acknowledged.Add(await append);
                    }
                    catch (IOException e)
                    {
                        full ??= e;
                    }
                }
            }

            Assert.NotNull(journal.Error);
            Assert.StartsWith("failed", journal.ToString(), StringComparison.Ordinal);
            await Assert.ThrowsAsync<IOException>(async () => await journal.AppendAsync(new byte[1], _stop));
            await Assert.ThrowsAsync<IOException>(async () =>
            {
                await foreach (JournalBatch _ in journal.ReadBatchesAsync(follow: true, cancellationToken: _stop))
                {
                }
            });
        }

        Assert.Equal(Enumerable.Range(0, acknowledged.Count).Select(i => (long)i), acknowledged);
        disk.Remount();
        JournalSummary summary = await Journal.VerifyAsync(folder, cancellationToken: _stop);
        Assert.True(summary.NextSequence >= acknowledged.Count);

        // Room is made by what the full disk has most of: old segments.
        foreach (string segment in Journaled.Segments(folder)[..^2])
        {
            File.Delete(segment);
        }

        await using Journal again = await Journal.OpenAsync(folder, options, _stop);
        Assert.Equal(summary.NextSequence, again.NextSequence);
        Assert.Equal(summary.NextSequence, await again.AppendAsync(new byte[1000], _stop));
    }

    /// <summary>A singleton of a host goes on when there is room again.</summary>
    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task ReopenAsync_DiskWasFullAndOldSegmentsAreTrimmed_GoesOn(bool preallocates)
    {
        using LoopDisk disk = LoopDisk.Make("ext4", 16L << 20);
        string folder = disk.PathOf("journal");
        await using Journal journal = await Journal.OpenAsync(
            folder, new() { SegmentSize = 1 << 20, PreallocateSegments = preallocates }, _stop);
        await journal.ReopenAsync(_stop);
        long acknowledged = -1;
        for (int round = 0; round < 3; round++)
        {
            acknowledged = Math.Max(acknowledged, await Journaled.AppendUntilItFailsAsync(journal, 100_000));
            await journal.TrimBeforeAsync(acknowledged, _stop);
            await journal.ReopenAsync(_stop);
            Assert.Null(journal.Error);
            Assert.True(journal.NextSequence > acknowledged);
            acknowledged = journal.NextSequence;
            Assert.Equal(acknowledged, await journal.AppendAsync(new byte[1000], _stop));
        }

        Assert.Equal(0, (await Journal.VerifyAsync(folder, cancellationToken: _stop)).TornBytes);
    }

    /// <summary>A sync that is under way when zeros cannot be written succeeds, after a follower has got the error.</summary>
    [Fact]
    public async Task AppendAsync_DiskIsFullWhileRecordsAreSynced_AcknowledgesNoneThatAFollowerDoesNotGet()
    {
        using LoopDisk disk = LoopDisk.Make("ext4", 16L << 20);
        await using Journal journal = await Journal.OpenAsync(
            disk.PathOf("journal"), new JournalOptions { PreallocateSegments = false }, _stop);
        long followed = 0;
        Task follow = Task.Run(
            async () =>
            {
                await foreach (JournalBatch batch in journal.ReadBatchesAsync(follow: true, cancellationToken: _stop))
                {
                    followed = batch.NextSequence;
                }
            }, _stop);
        long acknowledged = await Journaled.AppendUntilItFailsAsync(journal, 10_000);

        await Assert.ThrowsAsync<IOException>(() => follow);
        Assert.InRange(followed, acknowledged + 1, journal.NextSequence);
    }

    /// <summary>What something is mounted on cannot be removed (EBUSY): appends go on, and it is tried again.</summary>
    [Fact]
    public async Task AppendAsync_OldSegmentsCannotBeRemoved_GoesOnAndRemovesThemLater()
    {
        using LoopDisk disk = LoopDisk.Make("ext4", 64L << 20);
        string folder = disk.PathOf("journal");
        JournalOptions options = new() { PreallocateSegments = false, SegmentSize = 64 * 1024, RetainBytes = 300_000 };
        await Journaled.MakeAsync(folder, 1, options);
        string first = Journaled.Segments(folder)[0];
        SystemTool.Run("mount", "--bind", first, first);
        try
        {
            await using Journal stuck = await Journal.OpenAsync(folder, options, _stop);
            for (int i = 0; i < 300; i++)
            {
                await stuck.AppendAsync(new byte[3000], _stop);
            }

            await Eventually.TrueAsync(() => Task.FromResult(stuck.RetentionError is not null), "retention has not failed");
            Assert.Null(stuck.Error);
            Assert.Equal(0, stuck.FirstSequence);
            await Assert.ThrowsAsync<IOException>(async () => await stuck.TrimBeforeAsync(long.MaxValue, _stop));
            await stuck.AppendAsync(new byte[3000], _stop);
        }
        finally
        {
            SystemTool.Run("umount", "--lazy", first);
        }

        await using Journal journal = await Journal.OpenAsync(folder, options, _stop);
        Assert.Null(journal.RetentionError);
        Assert.True(journal.FirstSequence > 0);
    }

    /// <summary>What is left must still say that it is damaged: an end that a crash has left is cut by the next opening.</summary>
    [Fact]
    public async Task RepairAsync_DiskHasNoRoomForTheDamagedSegment_RemovesNothing()
    {
        using LoopDisk disk = LoopDisk.Make("ext4", 16L << 20);
        string folder = disk.PathOf("journal");
        JournalOptions options = new() { SegmentSize = 16 * 1024, PreallocateSegments = false };
        await using (Journal journal = await Journal.OpenAsync(folder, options, _stop))
        {
            await journal.AppendAsync(new byte[4 << 20], _stop);
            await Journaled.AppendAsync(journal, 100);
        }

        string[] segments = Journaled.Segments(folder);
        Journaled.Flip(segments[0], 2 << 20);
        disk.LeaveRoom(2 << 20);
        await Assert.ThrowsAsync<IOException>(async () => await Journal.RepairAsync(folder, cancellationToken: _stop));
        Assert.Equal(segments, Journaled.Segments(folder));
        await Assert.ThrowsAsync<InvalidJournalException>(async () => await Journal.VerifyAsync(folder, cancellationToken: _stop));
    }

    [Fact]
    public async Task AppendAsync_FileSystemBecomesReadOnly_NothingIsAcknowledgedLater()
    {
        using LoopDisk disk = LoopDisk.Make("ext4", 64L << 20, mountOptions: "errors=remount-ro");
        string folder = disk.PathOf("journal");
        long acknowledged = 0;
        await using (Journal journal = await Journal.OpenAsync(folder, cancellationToken: _stop))
        {
            await Journaled.AppendAsync(journal, 20);
            disk.TriggerError();
            IOException? failed = null;
            for (int i = 0; i < 1000 && failed is null; i++)
            {
                try
                {
                    acknowledged = await journal.AppendAsync(Journaled.Record(journal.NextSequence), _stop);
                }
                catch (IOException e)
                {
                    failed = e;
                }
            }

            Assert.NotNull(failed);
            for (int i = 0; i < 20; i++)
            {
                await Assert.ThrowsAsync<IOException>(async () => await journal.AppendAsync(new byte[1], _stop));
            }
        }

        disk.Remount();
        await using Journal again = await Journal.OpenAsync(folder, cancellationToken: _stop);
        Assert.True(again.NextSequence > acknowledged);
        Assert.Equal(again.NextSequence, await Journaled.ReadAsync(again.ReadBatchesAsync(cancellationToken: _stop)));
    }

    [Fact]
    public async Task ReadAsync_WriteBehindAndTheFileSystemBecomesReadOnly_ThrowsTheErrorAndTellsOfNoDamage()
    {
        using LoopDisk disk = LoopDisk.Make("ext4", 64L << 20, mountOptions: "errors=remount-ro");
        Journal journal = await Journal.OpenAsync(
            disk.PathOf("journal"), new JournalOptions { FlushGuarantee = FlushGuarantee.WriteBehind }, _stop);
        await Journaled.AppendAsync(journal, 20);
        disk.TriggerError();
        IOException? failed = null;
        while (failed is null)
        {
            failed = await Record.ExceptionAsync(async () => await journal.AppendAsync(new byte[1000], _stop)) as IOException;
        }

        await Assert.ThrowsAnyAsync<IOException>(async () =>
        {
            await foreach (JournalBatch _ in journal.ReadBatchesAsync(follow: true, cancellationToken: _stop))
            {
            }
        });
        await journal.DisposeAsync();
    }

    /// <summary>
    /// What a reader waits for is never written then: after <see cref="Journal.ReopenAsync"/> another record may have its number, which
    /// is not in the file yet either, and which the reader must not take for a damaged one.
    /// </summary>
    [Fact]
    public async Task WriteOutAsync_TheJournalHasFailed_ThrowsUntilItIsOpenedAgain()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "An open file keeps its name there.");
        using TempFolder temp = new();
        string folder = temp.File("journal");
        await using Journal journal = await Journal.OpenAsync(folder, new() { FlushGuarantee = FlushGuarantee.WriteBehind }, _stop);
        await journal.AppendAsync(new byte[100], _stop);
        await ((IJournalSource)journal).WriteOutAsync();
        string path = Path.Combine(folder, "lock");
        File.Move(path, temp.File("moved"));
        while (journal.Error is null)
        {
            await Record.ExceptionAsync(async () => await journal.AppendAsync(new byte[100], _stop));
        }

        await Assert.ThrowsAsync<IOException>(async () => await ((IJournalSource)journal).WriteOutAsync());

        // The cause has not gone.
        await Assert.ThrowsAsync<IOException>(async () => await journal.ReopenAsync(_stop));
        await Assert.ThrowsAsync<IOException>(async () => await journal.ReopenAsync(_stop));
        File.Move(temp.File("moved"), path);
        await journal.ReopenAsync(_stop);
        Assert.Equal(journal.NextSequence, await journal.AppendAsync(new byte[100], _stop));
        await ((IJournalSource)journal).WriteOutAsync();
    }

    /// <summary>With segments that grow, and with records that are written once more because nothing proves them.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task OpenAsyncAndAppendAsync_PastTheFileSizeLimit_ThrowIOExceptionThatNamesTheFile(bool isMade)
    {
        ChildProcess.SkipUnlessLinux("sh");
        using TempFolder temp = new();
        string folder = temp.File("journal");
        if (isMade)
        {
            await Journaled.MakeAsync(folder, 200);
            using FileStream segment = new(Journaled.Segments(folder)[0], FileMode.Open);
            segment.SetLength(segment.Length - StatementLength);
        }

        // 64 blocks of 512 bytes; the signal that goes with the limit would end the process (setrlimit(2)).
        (int status, string output, string error) = await ChildProcess.RunAsync($"trap '' XFSZ; ulimit -f 64; "
            + $"DOTNET_EnableWriteXorExecute=0 exec {ChildProcess.Command("journal", folder, "1")}");
        Assert.True(status == 3, output + error);
        string told = output.Trim().Split('\n')[^1];
        Assert.StartsWith("failed IOException", told, StringComparison.Ordinal);
        Assert.Contains(Path.Combine(folder, "00000000000000000000.journal"), told, StringComparison.Ordinal);
    }
}
