using System.Diagnostics;
using System.IO.Pipelines;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Follow;

/// <summary>The ways that are compared.</summary>
internal static class FollowWays
{
    /// <summary>By name; each takes the files.</summary>
    internal static IReadOnlyList<(string Name, Func<IReadOnlyList<string>, IFollowWay> Start)> All { get; } =
    [
        ("FilePipeReader, Follow", static paths => new Followed(paths)),
        ("FileStream, polled every 100 ms", static paths => new Polled(paths)),
        ("tail -F", static paths => new TailProcess(paths)),
    ];

    /// <summary>A read waits at the end of every file.</summary>
    private sealed class Followed(IReadOnlyList<string> paths) : IFollowWay
    {
        private readonly FilePipeReader[] _readers = [.. paths.Select(
            static path => FilePipeReader.Create(path, new FilePipeReaderOptions { Follow = true }))];
        private Task<ReadResult>[]? _reads;

        public TimeSpan Cpu => Environment.CpuUsage.TotalTime;

        public int Threads => Process.GetCurrentProcess().Threads.Count;

        public async Task NextLineAsync()
        {
            _reads ??= [.. _readers.Select(static reader => reader.ReadAsync().AsTask())];
            ReadResult result = await _reads[0];
            _readers[0].AdvanceTo(result.Buffer.End);
            _reads[0] = _readers[0].ReadAsync().AsTask();
        }

        public async ValueTask DisposeAsync()
        {
            foreach ((FilePipeReader reader, Task<ReadResult> read) in _readers.Zip(_reads ?? []))
            {
                reader.CancelPendingRead();
                _ = await read;
                await reader.CompleteAsync();
            }
        }
    }

    /// <summary>What programs do without help: a task a file that reads, and else sleeps.</summary>
    private sealed class Polled : IFollowWay
    {
        private readonly CancellationTokenSource _stop = new();
        private readonly SemaphoreSlim _lines = new(0);
        private readonly Task[] _polls;

        internal Polled(IReadOnlyList<string> paths) => _polls = [.. paths.Select((path, index) => PollAsync(path, index == 0))];

        public TimeSpan Cpu => Environment.CpuUsage.TotalTime;

        public int Threads => Process.GetCurrentProcess().Threads.Count;

        public Task NextLineAsync() => _lines.WaitAsync();

        public async ValueTask DisposeAsync()
        {
            await _stop.CancelAsync();
            await ((Task)Task.WhenAll(_polls)).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        }

        private async Task PollAsync(string path, bool isFirst)
        {
            byte[] buffer = new byte[4096];
            await using FileStream file = new(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete, bufferSize: 0);
            while (true)
            {
                int read = await file.ReadAsync(buffer, _stop.Token);
                int lines = buffer.AsSpan(0, read).Count((byte)'\n');
                if (isFirst && lines > 0)
                {
                    _lines.Release(lines);
                }

                if (read == 0)
                {
                    await Task.Delay(100, _stop.Token);
                }
            }
        }
    }

    /// <summary>GNU tail, whose output comes through a pipe.</summary>
    private sealed class TailProcess : IFollowWay
    {
        private readonly Process _process;

        internal TailProcess(IReadOnlyList<string> paths)
            => _process = Process.Start(new ProcessStartInfo("tail", ["-q", "-n", "0", "-F", .. paths]) { RedirectStandardOutput = true })!;

        public TimeSpan Cpu
        {
            get
            {
                _process.Refresh();
                return _process.TotalProcessorTime;
            }
        }

        public int Threads
        {
            get
            {
                _process.Refresh();
                return _process.Threads.Count;
            }
        }

        public async Task NextLineAsync() => _ = await _process.StandardOutput.ReadLineAsync();

        public async ValueTask DisposeAsync()
        {
            _process.Kill();
            await _process.WaitForExitAsync();
            _process.Dispose();
        }
    }
}
