using System.Diagnostics;
using System.IO.Pipelines;
using Pipelines.File;

namespace FilePipelines.Benchmarks;

/// <summary>How long it takes from a byte in one of many idle FIFOs to its reader's continuation. Linux.</summary>
internal static class IdleFifos
{
    /// <summary>How many FIFOs are open and waited for.</summary>
    internal static IReadOnlyList<int> Counts { get; } = [100, 3000];

    private const int WakeUps = 3000;

    /// <summary>Microseconds of one wake-up.</summary>
    internal static async Task<Spread> RunAsync(int count)
    {
        using TemporaryFolder folder = new();
        FileStream[] writeEnds = new FileStream[count];
        FilePipeReader[] readers = new FilePipeReader[count];
        Task<ReadResult>[] reads = new Task<ReadResult>[count];
        for (int i = 0; i < count; i++)
        {
            string path = folder.PathOf($"fifo-{i}");
            if (Libc.MakeFifo(path, 0b110_000_000) != 0)
            {
                throw new IOException("The system makes no FIFO.");
            }

            // Open for both, so that open(2) does not wait for the other side.
            writeEnds[i] = new FileStream(
                File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite), FileAccess.Write, bufferSize: 0);
            readers[i] = FilePipeReader.Create(path);
            reads[i] = readers[i].ReadAsync().AsTask();
        }

        List<double> microseconds = new(WakeUps);
        byte[] one = [1];
        for (int i = 0; i < WakeUps; i++)
        {
            int next = i * 7919 % count;
            long begin = Stopwatch.GetTimestamp();
            writeEnds[next].Write(one);
            ReadResult result = await reads[next];
            microseconds.Add(Stopwatch.GetElapsedTime(begin).TotalMicroseconds);
            readers[next].AdvanceTo(result.Buffer.End);
            reads[next] = readers[next].ReadAsync().AsTask();
        }

        for (int i = 0; i < count; i++)
        {
            readers[i].CancelPendingRead();
            await reads[i];
            await readers[i].CompleteAsync();
            await writeEnds[i].DisposeAsync();
        }

        return Spread.Of(microseconds);
    }
}
