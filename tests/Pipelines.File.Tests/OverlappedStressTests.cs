using System.Diagnostics;
using System.IO.Pipelines;
using System.Runtime.Versioning;
using FilePipelinesChild;
using Pipelines.File;

namespace FilePipelinesTests;

/// <summary>
/// Many readers and writers at once with cancellations at any moment: nothing is lost, nothing is leaked. Two seconds, or as long as
/// PIPELINES_FILE_STRESS_SECONDS says.
/// </summary>
[SupportedOSPlatform("windows")]
[Collection("whole process")]
public sealed class OverlappedStressTests : IDisposable
{
    private const int Workers = 64;

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public OverlappedStressTests() => Assert.SkipUnless(OperatingSystem.IsWindows(), "Overlapped I/O is of Windows; .ci/wine runs it.");

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task ManyReadersAndWriters_CanceledAtAnyMoment_LoseNothingAndLeakNothing()
    {
        double seconds = double.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_STRESS_SECONDS"), System.Globalization.CultureInfo.InvariantCulture, out double given) ? given : 2;

        // The first round makes what stays: threads of the pool, the completion port, pooled segments.
        await RoundAsync(TimeSpan.FromSeconds(0.5));
        int handles = HandleCount();
        (int files, long bytes, int cancellations) = await RoundAsync(TimeSpan.FromSeconds(seconds));
        TestContext.Current.SendDiagnosticMessage($"{files} files, {bytes} bytes, {cancellations} cancellations");
        Assert.True(cancellations > 0);

        // Every file is closed: each can be opened by one who wants it alone.
        foreach (string path in Directory.GetFiles(_folder.Path))
        {
            await Eventually.TrueAsync(() => OverlappedRaceTests.IsFree(path));
        }

        // Threads of the pool have handles of their own, a few each, and come and go.
        await Eventually.TrueAsync(() => HandleCount() <= handles + 100);
        Assert.True(files > 2 * Workers, $"Only {files} files: too few for a leak to show.");
    }

    private static int HandleCount()
    {
        GC.Collect();
        GC.WaitForPendingFinalizers();
        using Process self = Process.GetCurrentProcess();
        return self.HandleCount;
    }

    private async Task<(int Files, long Bytes, int Cancellations)> RoundAsync(TimeSpan duration)
    {
        int files = 0;
        long bytes = 0;
        int cancellations = 0;
        long end = Stopwatch.GetTimestamp() + (long)(duration.TotalSeconds * Stopwatch.Frequency);
        await Task.WhenAll(Enumerable.Range(0, Workers).Select(worker => Task.Run(
            async () =>
            {
                Random random = new(worker);
                string path = _folder.File($"f{worker}");
                do
                {
                    int length = random.Next(3) == 0 ? random.Next(2_000_000) : random.Next(100_000);
                    (long moved, int canceled) = await WriteAsync(path, length, random);
                    Interlocked.Add(ref bytes, moved);
                    Interlocked.Add(ref cancellations, canceled);
                    (moved, canceled) = await ReadAsync(path, length, random);
                    Interlocked.Add(ref bytes, moved);
                    Interlocked.Add(ref cancellations, canceled);
                    Interlocked.Add(ref files, 2);
                }
                while (Stopwatch.GetTimestamp() < end);
            },
            _stop)));
        return (files, bytes, cancellations);
    }

    private static async Task<(long Bytes, int Cancellations)> WriteAsync(string path, int length, Random random)
    {
        int canceled = 0;
        FilePipeWriter writer = FilePipeWriter.Create(path, new()
        {
            PauseWriterThreshold = random.Next(2) * 50_000,
            FlushGuarantee = random.Next(2) == 0 ? FlushGuarantee.WriteBehind : FlushGuarantee.Written,
            Share = FileShare.None,
            MinimumBufferSize = 1 + random.Next(10_000),
        });
        Assert.Equal(FilePipeBackend.Overlapped, writer.Backend);
        for (int index = 0; index < length;)
        {
            int size = Math.Min(1 + random.Next(40_000), length - index);
            Pattern.Fill(writer.GetSpan(size)[..size], index);
            writer.Advance(size);
            index += size;
            using CancellationTokenSource token = new();
            ValueTask<FlushResult> flush = writer.FlushAsync(token.Token);
            switch (random.Next(4))
            {
                case 0:
                    await token.CancelAsync();
                    break;
                case 1:
                    writer.CancelPendingFlush();
                    break;
            }

            try
            {
                canceled += (await flush).IsCanceled ? 1 : 0;
            }
            catch (OperationCanceledException)
            {
                canceled++;
            }
        }

        await writer.CompleteAsync();
        return (length, canceled);
    }

    private static async Task<(long Bytes, int Cancellations)> ReadAsync(string path, int length, Random random)
    {
        int canceled = 0;
        long index = 0;
        long stopAt = random.Next(4) == 0 ? random.Next(length + 1) : long.MaxValue;
        FilePipeReader reader = FilePipeReader.Create(path, new()
        {
            BufferSize = 1 + random.Next(100_000),
            PauseReadAheadThreshold = random.Next(2) * 300_000,
            Share = FileShare.None,
        });
        Assert.Equal(FilePipeBackend.Overlapped, reader.Backend);
        while (index < stopAt)
        {
            using CancellationTokenSource token = new();
            ValueTask<ReadResult> read = reader.ReadAsync(token.Token);
            switch (random.Next(4))
            {
                case 0:
                    await token.CancelAsync();
                    break;
                case 1:
                    reader.CancelPendingRead();
                    break;
                case 2 when random.Next(20) == 0:
                    // In the middle of a read: the file is written anew by this worker as soon as the handle is closed.
                    reader.Complete();
                    _ = await Record.ExceptionAsync(async () => await read);
                    await Eventually.TrueAsync(() => OverlappedRaceTests.IsFree(path));
                    return (index, canceled + 1);
            }

            try
            {
                ReadResult result = await read;
                canceled += result.IsCanceled ? 1 : 0;
                long consumed = Math.Min(result.Buffer.Length, random.Next(3) == 0 ? random.Next(100_000) : long.MaxValue);
                foreach (ReadOnlyMemory<byte> piece in result.Buffer.Slice(0, consumed))
                {
                    Assert.Equal(-1, Pattern.FirstDifference(piece.Span, index));
                    index += piece.Length;
                }

                bool isEnd = result.IsCompleted && consumed == result.Buffer.Length;
                reader.AdvanceTo(result.Buffer.GetPosition(consumed));
                if (isEnd)
                {
                    Assert.Equal(length, index);
                    break;
                }
            }
            catch (OperationCanceledException)
            {
                canceled++;
            }
        }

        await reader.CompleteAsync();
        await Eventually.TrueAsync(() => OverlappedRaceTests.IsFree(path));
        return (index, canceled);
    }
}
