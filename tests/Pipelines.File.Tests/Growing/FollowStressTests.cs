using System.Buffers;
using System.Diagnostics;
using System.Globalization;
using System.IO.Pipelines;
using System.Text;
using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>
/// Files that are written at full speed, rotated in every way and followed all the while, with cancellations at any moment: every line
/// comes once and in order, and nothing is left. Two seconds, or as long as PIPELINES_FILE_STRESS_SECONDS says.
/// </summary>
[Collection("whole process")]
[Trait("Category", StressTime.Category)]
public sealed class FollowStressTests : IDisposable
{
    private const int Workers = 12;

    private readonly TempFolder _folder = new();
    private readonly CheckedPool _pool = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private long _end;
    private volatile bool _hasFailed;
    private long _lines;
    private long _rotations;
    private long _cancellations;

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task ManyFollowers_FilesRotatedAtAnyMoment_GetEveryLineOnce()
    {
        double seconds = StressTime.Seconds;
        _end = Stopwatch.GetTimestamp() + (long)(seconds * Stopwatch.Frequency);
        Task[] workers = [.. Enumerable.Range(0, Workers).Select(number => Task.Run(() => WorkAsync(number), _stop))];
        await StressTime.BoundedAsync(Task.WhenAll(workers));
        TestContext.Current.SendDiagnosticMessage(
            $"{Workers} files, {seconds} s: {_lines} lines, {_rotations} rotations, {_cancellations} cancellations");
        Assert.True(_lines > 0 && _rotations > 0 && _cancellations > 0);
        await Eventually.TrueAsync(() => _pool.Rented == 0);
        Assert.Equal(0, _pool.ReturnedTwice);
        Assert.Equal(0, _pool.ReturnedPinned);
        if (OperatingSystem.IsLinux())
        {
            await Eventually.TrueAsync(() => OpenHandles.Below(_folder.Path) == 0);
            await Eventually.TrueAsync(() => OpenHandles.Watches() == 0);
        }
    }

    private async Task WorkAsync(int number)
    {
        Worker worker = new(_folder.File($"log{number}"));
        try
        {
            Task writing = Task.Run(() => WriteAsync(worker, new Random(number)), _stop);
            await FollowAsync(worker, new Random(number + 1000));
            await writing;
            Assert.Equal(worker.Written, worker.Read);
        }
        catch
        {
            _hasFailed = true;
            throw;
        }
    }

    /// <summary>
    /// Appends lines, and rotates the file when its follower has it open: what is rotated away before that, nobody could give.
    /// </summary>
    private async Task WriteAsync(Worker worker, Random random)
    {
        using GrowingFile file = new(worker.Path);
        worker.Identity = IdentityOf(worker.Path);
        int rotations = 0;
        while (Stopwatch.GetTimestamp() < _end && !_hasFailed)
        {
            AppendLines(worker, file, random.Next(random.Next(4) == 0 ? 2000 : 20));
            if (random.Next(3) == 0)
            {
                await Task.Delay(random.Next(3), _stop);
            }

            if (random.Next(20) != 0 || worker.Followed != worker.Identity)
            {
                continue;
            }

            Interlocked.Increment(ref _rotations);
            int kind = random.Next(OperatingSystem.IsWindows() ? 2 : 4);
            if (kind == 0 && file.Length == 0)
            {
                // To cut nothing off is no cut: the follower would not come on.
                continue;
            }

            if (kind == 0)
            {
                // A cut takes what is unread, and may be grown over unseen: both sides keep still for it.
                if (!await UntilAsync(() => worker.Read == worker.Written))
                {
                    return;
                }

                int opened = worker.Opened;
                file.Cut(0);
                if (!await UntilAsync(() => worker.Opened > opened))
                {
                    return;
                }

                continue;
            }

            if (kind == 3)
            {
                File.Delete(worker.Path);
            }
            else
            {
                File.Move(worker.Path, $"{worker.Path}.{++rotations}");
            }

            // The writer finds out only now.
            AppendLines(worker, file, random.Next(200));
            file.Reopen();
            worker.Identity = IdentityOf(worker.Path);
            if (kind == 2 && rotations > 1)
            {
                File.Delete($"{worker.Path}.{rotations - 1}");
            }
        }

        file.Append("end\n");

        static FileIdentity IdentityOf(string path)
            => FileIdentity.TryGet(path, out FileIdentity identity) ? identity : throw new FileNotFoundException(path);
    }

    private static void AppendLines(Worker worker, GrowingFile file, int count)
    {
        StringBuilder text = new();
        for (int i = 0; i < count; i++)
        {
            text.Append(CultureInfo.InvariantCulture, $"{worker.Written + i}\n");
        }

        // Half a line now and then.
        string all = text.ToString();
        file.Append(all[..(all.Length / 2)]);
        file.Append(all[(all.Length / 2)..]);
        worker.Written += count;
    }

    private async Task FollowAsync(Worker worker, Random random)
    {
        if (!await UntilAsync(() => File.Exists(worker.Path)))
        {
            return;
        }

        while (!_hasFailed)
        {
            FilePipeReader? reader = TryOpen(worker, random);
            if (reader is null)
            {
                await Task.Delay(1, _stop);
                continue;
            }

            worker.Followed = reader.Identity;
            worker.Opened++;
            bool isEnd = await ReadAsync(worker, reader, random);
            await reader.CompleteAsync();
            if (isEnd)
            {
                return;
            }
        }
    }

    private FilePipeReader? TryOpen(Worker worker, Random random)
    {
        try
        {
            return FilePipeReader.Create(worker.Path, new FilePipeReaderOptions
            {
                Follow = true,
                FollowInterval = TimeSpan.FromMilliseconds(50),
                BufferSize = 1 + random.Next(10_000),
                PauseReadAheadThreshold = random.Next(2) * 10_000,
                Pool = random.Next(4) == 0 ? _pool : null,
            });
        }
        catch (FileNotFoundException)
        {
            return null;
        }
        catch (UnauthorizedAccessException) when (OperatingSystem.IsWindows())
        {
            return null;
        }
    }

    /// <summary>Checks every line of one file. <see langword="true"/>: the last one was read.</summary>
    private async Task<bool> ReadAsync(Worker worker, FilePipeReader reader, Random random)
    {
        while (true)
        {
            ReadResult? read = await CanceledAsync(reader, random);
            if (read is not { } result)
            {
                continue;
            }

            ReadOnlySequence<byte> rest = result.Buffer;
            while (rest.PositionOf((byte)'\n') is { } end)
            {
                string line = Encoding.UTF8.GetString(rest.Slice(0, end));
                rest = rest.Slice(rest.GetPosition(1, end));
                if (line == "end")
                {
                    reader.AdvanceTo(rest.Start);
                    return true;
                }

                Assert.Equal(worker.Read.ToString(CultureInfo.InvariantCulture), line);
                worker.Read++;
                Interlocked.Increment(ref _lines);
            }

            bool isEnd = result.IsCompleted;
            Assert.True(!isEnd || rest.IsEmpty, "the file ends within a line");
            reader.AdvanceTo(rest.Start, rest.End);
            if (isEnd)
            {
                return false;
            }
        }
    }

    /// <summary>
    /// Often cancels: with a token or without, before the read, at once after its start, or from another thread somewhat later.
    /// </summary>
    private async Task<ReadResult?> CanceledAsync(FilePipeReader reader, Random random)
    {
        using CancellationTokenSource source = new();
        source.CancelAfter(StressTime.Grace);
        Action cancel = random.Next(2) == 0 ? source.Cancel : reader.CancelPendingRead;
        int when = random.Next(8);
        int spins = random.Next(20_000);
        if (when == 0)
        {
            cancel();
        }

        ValueTask<ReadResult> pending = reader.ReadAsync(source.Token);
        Task later = Task.CompletedTask;
        if (when == 1)
        {
            cancel();
        }
        else if (when == 2)
        {
            later = Task.Run(
                () =>
                {
                    Thread.SpinWait(spins);
                    cancel();
                },
                CancellationToken.None);
        }

        try
        {
            ReadResult result = await pending;
            if (result.IsCanceled)
            {
                Interlocked.Increment(ref _cancellations);
            }

            return result;
        }
        catch (OperationCanceledException)
        {
            Assert.False(_hasFailed);
            Interlocked.Increment(ref _cancellations);
            return null;
        }
        finally
        {
            await later;
        }
    }

    private async Task<bool> UntilAsync(Func<bool> isTrue)
    {
        long limit = Stopwatch.GetTimestamp() + (long)(StressTime.Grace.TotalSeconds * Stopwatch.Frequency);
        while (!isTrue())
        {
            Assert.True(Stopwatch.GetTimestamp() < limit, "the follower does not come on");
            if (_hasFailed)
            {
                return false;
            }

            await Task.Delay(1, _stop);
        }

        return true;
    }

    /// <summary>What the writer and the follower of one file know of each other.</summary>
    private sealed class Worker(string path)
    {
        private readonly Lock _lock = new();
        private FileIdentity _identity;
        private FileIdentity _followed;
        private long _written;
        private long _read;
        private int _opened;

        public string Path { get; } = path;

        public FileIdentity Identity
        {
            get => Locked(ref _identity);
            set => SetLocked(ref _identity, value);
        }

        public FileIdentity Followed
        {
            get => Locked(ref _followed);
            set => SetLocked(ref _followed, value);
        }

        public long Written
        {
            get => Locked(ref _written);
            set => SetLocked(ref _written, value);
        }

        public long Read
        {
            get => Locked(ref _read);
            set => SetLocked(ref _read, value);
        }

        public int Opened
        {
            get => Locked(ref _opened);
            set => SetLocked(ref _opened, value);
        }

        private T Locked<T>(ref T field)
        {
            lock (_lock)
            {
                return field;
            }
        }

        private void SetLocked<T>(ref T field, T value)
        {
            lock (_lock)
            {
                field = value;
            }
        }
    }
}
