namespace FilePipelines.Tests;

/// <summary>The lines of a log, one at a time, with what must not come.</summary>
internal sealed class FollowedLog : IAsyncDisposable
{
    private readonly CancellationTokenSource _ended = CancellationTokenSource.CreateLinkedTokenSource(
        TestContext.Current.CancellationToken);
    private readonly LogFollower _follower;
    private readonly IAsyncEnumerator<FollowedLine> _lines;
    private Task<bool>? _pending;

    public FollowedLog(string path, LogFollowerOptions? options = null)
    {
        _follower = new LogFollower(path, options ?? Quick);
        _lines = _follower.ReadLinesAsync(_ended.Token).GetAsyncEnumerator(TestContext.Current.CancellationToken);
    }

    public static QuickOptions Quick { get; } = new();

    public FollowedLine Current => _lines.Current;

    public LogFollowerStatistics Statistics => _follower.GetStatistics();

    public static QuickOptions From(FileCheckpoint checkpoint) => Quick with { Checkpoint = checkpoint };

    /// <summary>Steps to the next line.</summary>
    public async Task<FollowedLine> NextAsync()
    {
        Assert.True(await GrowingFile.Bounded(StepAsync()));
        _pending = null;
        return Current;
    }

    /// <summary>These are the next lines, whole.</summary>
    public async Task ExpectAsync(params string[] lines)
    {
        foreach (string line in lines)
        {
            FollowedLine next = await NextAsync();
            Assert.Equal(line, next.ToString());
            Assert.True(next.HasLineEnd);
        }
    }

    /// <summary>Nothing comes for a moment.</summary>
    public async Task ExpectNothingAsync()
    {
        await Task.Delay(200, TestContext.Current.CancellationToken);
        Assert.False(StepAsync().IsCompleted, StepAsync().IsCompletedSuccessfully ? Current.ToString() : "");
    }

    public Task CancelAsync() => _ended.CancelAsync();

    /// <summary>The step that is under way, or a new one.</summary>
    public Task<bool> StepAsync() => _pending ??= _lines.MoveNextAsync().AsTask();

    public async ValueTask DisposeAsync()
    {
        await _ended.CancelAsync();
        if (_pending is not null)
        {
            await ((Task)_pending).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        }

        await _lines.DisposeAsync();
        _ended.Dispose();
    }
}
