using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>Checkpoints of logs that have no file any more.</summary>
public sealed class GoneLogTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task Checkpoints_OfLogsThatAreGone_AreForgottenWithTheNextBatch()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Wine 8 keeps the name of a deleted file while it is open.");
        string stays = _folder.File("stays.log");
        string goes = _folder.File("goes.log");
        await File.WriteAllTextAsync(goes, "1\n", _stop);
        CheckpointFile position = await CheckpointFile.OpenAsync(_folder.File("position"), cancellationToken: _stop);

        // Of a log that was removed while the program was stopped.
        Assert.True(FileIdentity.TryGet(goes, out FileIdentity identity));
        position.Set(_folder.File("before.log"), new FileCheckpoint(identity, 2));
        LogFollower follower = new(_folder.File("*.log"), FollowedLog.Quick with { Checkpoints = position.Checkpoints });
        await using IAsyncEnumerator<FollowedBatch> batches = follower.ReadBatchesAsync(100, 1000, TimeSpan.Zero, _stop)
            .GetAsyncEnumerator(_stop);
        Assert.True(await batches.MoveNextAsync());
        Assert.Equal(goes, batches.Current.Path);
        await position.SaveAsync(batches.Current, _stop);
        File.Delete(goes);
        await Eventually.TrueAsync(async () =>
        {
            await File.AppendAllTextAsync(stays, "line\n", _stop);
            Assert.True(await batches.MoveNextAsync());
            Assert.Equal(batches.Current.GoneLogs, batches.Current.Copy().GoneLogs);
            await position.SaveAsync(batches.Current, _stop);
            return position.Checkpoints.Keys.SequenceEqual([stays]);
        });

        CheckpointFile saved = await CheckpointFile.OpenAsync(_folder.File("position"), cancellationToken: _stop);
        Assert.Equal([stays], saved.Checkpoints.Keys);
    }

    [Fact]
    public async Task Checkpoint_NoOtherLogIsInItsFolder_WaitsForItsFile()
    {
        // As of a volume that is not mounted yet.
        string log = _folder.File("a.log");
        await File.WriteAllTextAsync(log, "1\n2\n", _stop);
        FileCheckpoint checkpoint;
        await using (FollowedLog lines = new(log))
        {
            await lines.ExpectAsync("1");
            checkpoint = lines.Current.Checkpoint;
        }

        File.Move(log, _folder.File("away"));
        await using FollowedLog after = new(_folder.File("*.log"), FollowedLog.Quick with
        {
            Checkpoints = new Dictionary<string, FileCheckpoint> { [log] = checkpoint },
        });
        await after.ExpectNothingAsync();
        File.Move(_folder.File("away"), log);
        await after.ExpectAsync("2");
    }
}
