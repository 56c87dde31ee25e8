using Pipelines.File.Diagnostics;

namespace FilePipelines.Tests;

/// <summary>
/// A copy into a destination whose code ends it within each of its calls, or whose source answers anything: each byte arrives once, and
/// everything is released.
/// </summary>
public sealed class CopyCallbackTests : FileTests
{
    private const int Length = 20_000;
    private const int MaxCalls = 14;

    public CopyCallbackTests() => Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Unix system calls.");

    /// <summary>What the destination does.</summary>
    public enum Act
    {
        Throw,
        CancelPendingRead,
        CancelToken,
        Complete,
    }

    /// <summary>How the file is read.</summary>
    public enum Way
    {
        Inline,
        HandedOver,
        InTurns,
        Buffered,
        ReadAhead,
    }

    public static MatrixTheoryData<Act, Way> Ways { get; } = new(Enum.GetValues<Act>(), Enum.GetValues<Way>());

    [Theory]
    [MemberData(nameof(Ways))]
    public async Task CopyToAsync_DestinationEndsItWithinEachOfItsCalls_LosesAndRepeatsNothing(Act act, Way way)
    {
        byte[] content = Pattern.Bytes(Length);
        string path = _folder.File("f", content);
        for (int at = 1; at <= MaxCalls; at++)
        {
            using CancellationTokenSource cancel = new();
            FilePipeReader reader = await OpenAsync(path, way);
            int calls = 0;
            WatchedWriter destination = new(4096) { OnCall = Call };
            Exception? error = await Record.ExceptionAsync(
                () => reader.CopyToAsync(destination, cancel.Token).WaitAsync(Eventually.Limit, _stop));
            if (act == Act.Complete)
            {
                Assert.True(error is InvalidOperationException || (error is null && calls < at), $"{at}: {error}");
            }
            else
            {
                Assert.Equal(destination.Received.Count, reader.Position);
                Assert.True(error is TimeoutException or OperationCanceledException || (error is null && calls < at), $"{at}: {error}");
                await reader.CopyToAsync(destination, _stop).WaitAsync(Eventually.Limit, _stop);
                Assert.Equal(content, destination.Received);
            }

            Assert.Equal(content[..destination.Received.Count], destination.Received);
            await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
            Assert.Equal(0, OpenHandles.Of(path));

            void Call()
            {
                if (++calls != at)
                {
                    return;
                }

                switch (act)
                {
                    case Act.Throw:
                        throw new TimeoutException("destination");
                    case Act.CancelPendingRead:
                        reader.CancelPendingRead();
                        break;
                    case Act.CancelToken:
                        cancel.Cancel();
                        break;
                    default:
                        reader.Complete();
                        break;
                }
            }
        }
    }

    [Theory]
    [InlineData(-Libc.EIO)]
    [InlineData(-Libc.EINTR)]
    [InlineData(1)]
    [InlineData(0)]
    public async Task CopyToAsync_EachCallAnswersThis_CopiesABeginningOrAll(int answer)
    {
        byte[] content = Pattern.Bytes(Length);
        string path = _folder.File("f", content);
        for (int at = 1; at <= 8; at++)
        {
            for (int kind = 0; kind < 3; kind++)
            {
                int calls = 0;
                long? Answer() => Interlocked.Increment(ref calls) == at ? answer : 3000;
                ScriptedCalls scripted = new()
                {
                    OnReadNoWait = _ => kind == 0 ? Answer() : -Libc.EAGAIN,
                    OnRead = _ => kind == 0 ? 3000 : Answer(),
                };
                FilePipeReader reader = scripted.Read(path);
                WatchedWriter destination = new(4096);
                Exception? error = await Record.ExceptionAsync(
                    () => reader.CopyToAsync(destination, _stop).WaitAsync(Eventually.Limit, _stop));
                Assert.Equal(reader.Position, destination.Received.Count);
                Assert.Equal(content[..destination.Received.Count], destination.Received);
                Assert.True(error is null || (answer == -Libc.EIO && error is IOException), $"{error}");
                Assert.True(error is not null || destination.Received.Count == Length || answer == 0, $"{destination.Received.Count}");
                if (error is not null)
                {
                    Assert.Same(error, await Record.ExceptionAsync(async () => await reader.ReadAsync(_stop)));
                }

                await reader.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop);
                Assert.Equal(0, OpenHandles.Of(path));
            }
        }
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task SharedFileReadAsync_DisposedMeanwhile_GivesTheBytesOrThrows(bool isDeleted)
    {
        string path = _folder.File("f", Pattern.Bytes(Length));
        using Gate gate = new();
        ScriptedCalls calls = new() { OnReadNoWait = _ => -Libc.EAGAIN, OnRead = gate.Hold };
        SharedFile file = new SharedFile(calls.Backend(path, FileMode.Open, FileAccess.Read), path);
        WatchedWriter destination = new(4096);
        Task<int> read = file.ReadAsync(destination, 100, 1000).AsTask();
        gate.WaitForCall();
        if (isDeleted)
        {
            File.Delete(path);
        }

        file.Dispose();
        gate.Open();
        Exception? error = await Record.ExceptionAsync(() => read.WaitAsync(Eventually.Limit, _stop));
        Assert.True(error is null or ObjectDisposedException or IOException, $"{error}");
        Assert.Equal(error is null ? Pattern.Bytes(1000, 100) : [], destination.Received);
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task SharedFileReadAsync_EachCallFailsOnce_TheNextReadIsFine(bool isHandedOver)
    {
        string path = _folder.File("f", Pattern.Bytes(Length));
        foreach (int answer in new[] { -Libc.EIO, -Libc.EINTR, 1, 0 })
        {
            ScriptedCalls calls = new()
            {
                OnReadNoWait = call => isHandedOver ? -Libc.EAGAIN : call == 1 ? answer : null,
                OnRead = call => isHandedOver && call == 1 ? answer : null,
            };
            using SharedFile file = new SharedFile(calls.Backend(path, FileMode.Open, FileAccess.Read), path);
            WatchedWriter destination = new(4096);
            int read = 0;
            Exception? error = await Record.ExceptionAsync(async () => read = await file.ReadAsync(destination, 0, 1000));
            Assert.True(error is null || (answer == -Libc.EIO && error is IOException), $"{error}");
            Assert.Equal(read, destination.Received.Count);
            Assert.Equal(1000, await file.ReadAsync(destination, read, 1000));
            Assert.Equal(Pattern.Bytes(read + 1000), destination.Received);
        }
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task SharedFileReadAsync_DestinationThrowsInEachCall_TheNextReadIsFine(bool isHandedOver)
    {
        string path = _folder.File("f", Pattern.Bytes(Length));
        for (int at = 1; at <= 2; at++)
        {
            ScriptedCalls calls = new() { OnReadNoWait = _ => isHandedOver ? -Libc.EAGAIN : null };
            using SharedFile file = new SharedFile(calls.Backend(path, FileMode.Open, FileAccess.Read), path);
            int asked = 0;
            WatchedWriter destination = new(4096) { OnCall = () => _ = ++asked == at ? throw new TimeoutException() : 0 };
            await Assert.ThrowsAsync<TimeoutException>(async () => await file.ReadAsync(destination, 0, 1000));
            Assert.Equal(1000, await file.ReadAsync(destination, 0, 1000));
            Assert.Equal(Pattern.Bytes(1000), destination.Received);
        }
    }

    private async Task<FilePipeReader> OpenAsync(string path, Way way)
    {
        ScriptedCalls calls = new()
        {
            OnReadNoWait = call => way == Way.HandedOver || (way == Way.InTurns && call % 2 == 0) ? -Libc.EAGAIN : 3000,
            OnRead = _ => 3000,
        };
        FilePipeReader reader = calls.Read(path, new() { PauseReadAheadThreshold = way == Way.ReadAhead ? 10_000 : 0 });
        if (way is Way.Buffered or Way.ReadAhead)
        {
            ReadResult result = await reader.ReadAtLeastAsync(5000, _stop);
            reader.AdvanceTo(result.Buffer.Start, result.Buffer.GetPosition(100));
        }

        return reader;
    }
}
