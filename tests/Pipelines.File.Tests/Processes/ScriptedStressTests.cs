using System.Diagnostics;
using System.IO.Pipelines;
using FilePipelines.Child;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelines.Tests;

/// <summary>
/// Files and FIFOs, written and read by many at once, with cancellations from another thread at any moment and calls that are short,
/// interrupted or would wait: nothing is lost, nothing is leaked. Two seconds, or as long as PIPELINES_FILE_STRESS_SECONDS says.
/// </summary>
[Collection("whole process")]
[Trait("Category", StressTime.Category)]
public sealed class ScriptedStressTests : IDisposable
{
    private const int Workers = 16;

    private readonly TempFolder _folder = new();
    private readonly CheckedPool _pool = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private long _files;
    private long _bytes;
    private long _cancellations;

    public ScriptedStressTests()
        => Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts system calls of Linux; StressTests is for every system.");

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task ManyReadersAndWriters_CanceledAtAnyMoment_LoseNothingAndLeakNothing()
    {
        double seconds = StressTime.Seconds;
        long end = Stopwatch.GetTimestamp() + (long)(seconds * Stopwatch.Frequency);
        await StressTime.BoundedAsync(Task.WhenAll(Enumerable.Range(0, Workers).Select(worker => Task.Run(
            async () =>
            {
                Random random = new(worker);
                do
                {
                    await PlayAsync(_folder.File($"f{worker}"), random).WaitAsync(Eventually.Limit, _stop);
                }
                while (Stopwatch.GetTimestamp() < end);
            },
            _stop))));
        TestContext.Current.SendDiagnosticMessage($"{_files} files, {_bytes} bytes, {_cancellations} cancellations");
        Assert.True(_cancellations > 0 && _files > Workers);
        await Eventually.TrueAsync(() => _pool.Rented == 0);
        Assert.Equal(0, _pool.ReturnedTwice);
        Assert.Equal(0, _pool.ReturnedPinned);
        await Eventually.TrueAsync(() => OpenHandles.Below(_folder.Path) == 0);
    }

    private async Task PlayAsync(string path, Random random)
    {
        long length = random.Next(3) == 0 ? random.Next(2_000_000) : random.Next(100_000);
        if (random.Next(2) == 0)
        {
            await WriteAsync(Writer(path, FileMode.Create, random), length, random.Next());
            await ReadAsync(Reader(path, random), length, random.Next());
            File.Delete(path);
        }
        else
        {
            FilePipeReader reader;
            FilePipeWriter writer;
            using (Fifo fifo = Fifo.Create(_folder, Path.GetFileName(path) + "-fifo"))
            {
                reader = Reader(fifo.Path, random);
                writer = Writer(fifo.Path, FileMode.Open, random);
                File.Delete(fifo.Path);
            }

            int seed = random.Next();
            await Task.WhenAll(
                Task.Run(() => WriteAsync(writer, length, seed), _stop), Task.Run(() => ReadAsync(reader, length, seed + 1), _stop));
        }

        Interlocked.Increment(ref _files);
        Interlocked.Add(ref _bytes, length);
    }

    private FilePipeReader Reader(string path, Random random) => Calls(random).Read(path, new()
    {
        BufferSize = 1 + random.Next(random.Next(2) == 0 ? 1000 : 100_000),
        PauseReadAheadThreshold = random.Next(2) * random.Next(300_000),
        Pool = random.Next(2) == 0 ? _pool : null,
    });

    private FilePipeWriter Writer(string path, FileMode mode, Random random)
    {
        SafeFileHandle handle = File.OpenHandle(path, mode, FileAccess.Write, FileShare.ReadWrite);
        FilePipeWriterOptions options = new()
        {
            MinimumBufferSize = 1 + random.Next(10_000),
            PauseWriterThreshold = random.Next(2) * random.Next(1, 100_000),
            FlushGuarantee = random.Next(3) == 0 ? FlushGuarantee.Written : FlushGuarantee.WriteBehind,
            Pool = random.Next(2) == 0 ? _pool : null,
        };
        return FilePipeWriter.Create(
            new UnixFile(handle, path, FileProperties.Of(handle, path), Calls(random)), options, leaveOpen: false, isOpenedByPath: true);
    }

    /// <summary>Now and then a call that is interrupted, short, or would wait.</summary>
    private static ScriptedCalls Calls(Random random)
    {
        // Never every call: a FIFO that poll(2) calls ready is asked again until it answers.
        int every = 2 + random.Next(20);
        return new()
        {
            OnReadNoWait = call =>
                call % every == 0 ? -Libc.EAGAIN : call % 7 == 0 ? -Libc.EINTR : call % 5 == 0 ? 1 + (call * 37 % 5000) : null,
            OnRead = call => call % 7 == 0 ? -Libc.EINTR : call % 3 == 0 ? 1 + (call * 37 % 5000) : null,
            OnWrite = call => call % 7 == 0 ? -Libc.EINTR : call % 3 == 0 ? 1 + (call * 37 % 5000) : null,
        };
    }

    private async Task WriteAsync(FilePipeWriter writer, long length, int seed)
    {
        Random random = new(seed);
        using CancellationTokenSource done = new();
        Task canceller = CancelNowAndThenAsync(writer.CancelPendingFlush, random.Next(), done.Token);
        for (long index = 0; index < length;)
        {
            int size = (int)Math.Min(1 + random.Next(20_000), length - index);
            Pattern.Fill(writer.GetSpan(size)[..size], index);
            writer.Advance(size);
            index += size;
            await TryAsync(async token => (await writer.FlushAsync(token)).IsCanceled, random);
        }

        await done.CancelAsync();
        await canceller;
        if (random.Next(4) == 0)
        {
            writer.Complete();
        }
        else
        {
            await writer.CompleteAsync();
        }
    }

    private async Task ReadAsync(FilePipeReader reader, long length, int seed)
    {
        Random random = new(seed);
        using CancellationTokenSource done = new();
        Task canceller = CancelNowAndThenAsync(reader.CancelPendingRead, random.Next(), done.Token);
        long index = 0;
        bool isEnd = false;
        while (!isEnd)
        {
            await TryAsync(
                async token =>
                {
                    if (random.Next(50) == 0)
                    {
                        // What it copies before it is canceled is in the pipe, and is consumed.
                        Pipe pipe = new(new PipeOptions(pauseWriterThreshold: 0));
                        try
                        {
                            await reader.CopyToAsync(pipe.Writer, token);
                            isEnd = true;
                        }
                        finally
                        {
                            await pipe.Writer.CompleteAsync();
                            MemoryStream copied = new();
                            await pipe.Reader.CopyToAsync(copied, CancellationToken.None);
                            Check(copied.ToArray());
                        }

                        return false;
                    }

                    ReadResult result = default;
                    if (random.Next(4) != 0 || !reader.TryRead(out result))
                    {
                        result = random.Next(2) == 0
                            ? await reader.ReadAsync(token)
                            : await reader.ReadAtLeastAsync(random.Next(50_000), token);
                    }

                    long consumed = Math.Min(result.Buffer.Length, random.Next(3) == 0 ? random.Next(100_000) : long.MaxValue);
                    foreach (ReadOnlyMemory<byte> piece in result.Buffer.Slice(0, consumed))
                    {
                        Check(piece.Span);
                    }

                    isEnd = result.IsCompleted && consumed == result.Buffer.Length;
                    reader.AdvanceTo(
                        result.Buffer.GetPosition(consumed), random.Next(2) == 0 ? result.Buffer.GetPosition(consumed) : result.Buffer.End);
                    return result.IsCanceled;
                },
                random);
        }

        await done.CancelAsync();
        await canceller;
        Assert.Equal(length, index);
        Assert.Equal(length, reader.Position);
        await reader.CompleteAsync();

        void Check(ReadOnlySpan<byte> bytes)
        {
            Assert.Equal(-1, Pattern.FirstDifference(bytes, index));
            index += bytes.Length;
        }
    }

    /// <summary>Sometimes with a token that is canceled while it goes on.</summary>
    private async Task TryAsync(Func<CancellationToken, Task<bool>> act, Random random)
    {
        using CancellationTokenSource source = new();
        Task canceling = random.Next(4) == 0 ? Task.Run(source.Cancel, CancellationToken.None) : Task.CompletedTask;
        try
        {
            if (await act(source.Token))
            {
                Interlocked.Increment(ref _cancellations);
            }
        }
        catch (OperationCanceledException)
        {
            Interlocked.Increment(ref _cancellations);
        }

        await canceling;
    }

    private static Task CancelNowAndThenAsync(Action cancel, int seed, CancellationToken done)
        => Task.Run(
            async () =>
            {
                Random random = new(seed);
                while (!done.IsCancellationRequested)
                {
                    cancel();
                    Thread.SpinWait(random.Next(2000));
                    await Task.Delay(random.Next(3), CancellationToken.None);
                }
            },
            CancellationToken.None);
}
