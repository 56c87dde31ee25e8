namespace FilePipelines.Tests;

public sealed class CheckpointFileTests : FileTests
{
    private static readonly FileCheckpoint s_checkpoint =
        FileCheckpoint.Parse("fe00000000:c12b8d:18ea2afc0e806c22@13#2:0123456789abcdef", null);

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task SaveAsync_AndOpenAsync_AreTheWayThereAndBack(bool durable)
    {
        string path = _folder.File("position");
        CheckpointFile file = await CheckpointFile.OpenAsync(path, durable, _stop);
        Assert.Empty(file.Checkpoints);
        string[] logs = [_folder.File("a"), _folder.File("ö %\n line"), _folder.File("gone")];
        Array.ForEach(logs, log => file.Set(log, s_checkpoint));
        Assert.True(file.Remove(logs[2]));
        Assert.False(file.Remove(logs[2]));
        await file.SaveAsync(_stop);
        CheckpointFile again = await CheckpointFile.OpenAsync(path, durable, _stop);
        Assert.Equal([(logs[0], s_checkpoint), (logs[1], s_checkpoint)], again.Checkpoints.Select(static pair => (pair.Key, pair.Value)));
    }

    [Theory]
    [InlineData("")]
    [InlineData("\0\0\0\0")]
    [InlineData("Pipelines.File checkpoints 1\nfe00000000:c12b8d:18ea2afc0e806")]
    [InlineData("Pipelines.File checkpoints 1\nfe00000000:c12b8d:18ea2afc0e806c22@1\0\0\0\0")]
    public async Task OpenAsync_WhatAPowerFailureLeaves_HasNoCheckpoints(string content)
    {
        string path = _folder.File("position");
        await File.WriteAllTextAsync(path, content, _stop);
        Assert.Empty((await CheckpointFile.OpenAsync(path, cancellationToken: _stop)).Checkpoints);
    }

    [Fact]
    public async Task OpenAsync_OfAnotherFile_Throws()
    {
        string path = _folder.File("log", "1\n"u8.ToArray());
        await Assert.ThrowsAsync<InvalidDataException>(() => CheckpointFile.OpenAsync(path, cancellationToken: _stop));
    }

    [Fact]
    public async Task Set_OfNoCheckpoint_Throws()
    {
        CheckpointFile file = await CheckpointFile.OpenAsync(_folder.File("position"), cancellationToken: _stop);
        Assert.Throws<ArgumentException>("checkpoint", () => file.Set("log", default));
        Assert.Empty(file.Checkpoints);
    }
}
