using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>A log whose name is a link, as in Kubernetes: its files rotate beside the target.</summary>
public sealed class LogLinkTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly string _link;
    private readonly string _target;

    public LogLinkTests()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Links take a privilege there.");
        _target = Path.Combine(Directory.CreateDirectory(_folder.File("pods")).FullName, "0.log");
        _link = Path.Combine(Directory.CreateDirectory(_folder.File("containers")).FullName, "web-1.log");
        File.CreateSymbolicLink(_link, _target);
    }

    public void Dispose() => _folder.Dispose();

    [Theory]
    [InlineData(1)]
    [InlineData(3)]
    public async Task Link_RotatedWhileStopped_ReadsTheFilesBesideTheTarget(int times)
    {
        File.WriteAllText(_target, "1\n2\n");
        FileCheckpoint checkpoint;
        await using (FollowedLog lines = new(_link))
        {
            await lines.ExpectAsync("1");
            checkpoint = lines.Current.Checkpoint;
        }

        for (int i = 0; i < times; i++)
        {
            Rotate(i, $"{i + 3}\n");
        }

        await using FollowedLog after = new(_link, FollowedLog.From(checkpoint));
        for (int i = 2; i <= times + 2; i++)
        {
            await after.ExpectAsync($"{i}");
            Assert.False(after.Current.IsAfterGap);
            Assert.Equal(_link, after.Current.Path);
        }

        await after.ExpectNothingAsync();
    }

    [Fact]
    public async Task Link_RotatedTwiceAtOnce_ReadsTheFileBetween()
    {
        File.WriteAllText(_target, "1\n");
        await using FollowedLog lines = new(_link);
        await lines.ExpectAsync("1");
        Rotate(0, "2\n");
        Rotate(1, "3\n");
        await lines.ExpectAsync("2", "3");
        await lines.ExpectNothingAsync();
    }

    [Fact]
    public async Task Link_TurnedToTheNextTarget_ReadsBothAndWhatRotatesBesideTheNewOne()
    {
        File.WriteAllText(_target, "1\n");
        await using FollowedLog lines = new(_link);
        await lines.ExpectAsync("1");
        string next = Path.Combine(Path.GetDirectoryName(_target)!, "1.log");
        File.AppendAllText(_target, "2\n");
        File.WriteAllText(next, "3\n");
        File.CreateSymbolicLink(_link + ".new", next);
        File.Move(_link + ".new", _link, overwrite: true);
        await lines.ExpectAsync("2", "3");
        File.Move(next, next + ".20261128-101000");
        File.WriteAllText(next, "4\n");
        File.Move(next, next + ".20261128-101001");
        File.WriteAllText(next, "5\n");
        await lines.ExpectAsync("4", "5");
        await lines.ExpectNothingAsync();
    }

    /// <summary>As a container that was started again right after, or right before, the kubelet has rotated its log.</summary>
    [Theory]
    [InlineData(true)]
    [InlineData(false)]
    public async Task Link_TurnedAndATargetRotatedBetweenTwoLooks_ReadsTheFilesOfBothTargets(bool isRotatedBefore)
    {
        ManualClock clock = new();
        File.WriteAllText(_target, "1\n");
        await using FollowedLog lines = new(_link, FollowedLog.Quick with { TimeProvider = clock });
        await lines.ExpectAsync("1");
        string next = Path.Combine(Path.GetDirectoryName(_target)!, "1.log");
        await Task.Delay(20, TestContext.Current.CancellationToken);      // the next tick of the file system's clock
        if (isRotatedBefore)
        {
            Rotate(0, "2\n");
            Rotate(1, "3\n");
            await Task.Delay(20, TestContext.Current.CancellationToken);
            File.WriteAllText(next, "4\n");
        }
        else
        {
            File.AppendAllText(_target, "2\n");
            File.WriteAllText(next, "3\n");
        }

        File.CreateSymbolicLink(_link + ".new", next);
        File.Move(_link + ".new", _link, overwrite: true);
        if (!isRotatedBefore)
        {
            await Task.Delay(20, TestContext.Current.CancellationToken);
            File.Move(next, next + ".20261128-101000");
            File.WriteAllText(next, "4\n");
        }

        for (int i = 2; i <= 4; i++)
        {
            await clock.AdvanceUntilAsync(lines.StepAsync(), FollowedLog.Quick.FollowInterval);
            await lines.ExpectAsync($"{i}");
            Assert.False(lines.Current.IsAfterGap);
        }
    }

    /// <summary>As a container that was started again while the follower was stopped: its new file has another name.</summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Link_TurnedWhileStopped_SaysThatLinesAreMissing(bool isRemoved)
    {
        File.WriteAllText(_target, "1\n2\n");
        FileCheckpoint checkpoint;
        await using (FollowedLog lines = new(_link))
        {
            await lines.ExpectAsync("1");
            checkpoint = lines.Current.Checkpoint;
        }

        string next = Path.Combine(Path.GetDirectoryName(_target)!, "1.log");
        File.WriteAllText(next, "3\n");
        File.CreateSymbolicLink(_link + ".new", next);
        File.Move(_link + ".new", _link, overwrite: true);
        if (isRemoved)
        {
            File.Delete(_target);
        }

        await using FollowedLog after = new(_link, FollowedLog.From(checkpoint));
        await after.ExpectAsync("3");
        Assert.True(after.Current.IsAfterGap);
    }

    /// <summary>As the kubelet names what it rotates.</summary>
    private void Rotate(int number, string text)
    {
        File.Move(_target, $"{_target}.20261128-1010{number:00}");
        File.WriteAllText(_target, text);
    }
}
