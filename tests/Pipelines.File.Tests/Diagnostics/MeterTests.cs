using System.Diagnostics.Metrics;
using Pipelines.File.Diagnostics;

namespace FilePipelines.Tests;

/// <summary>The meter as a listener sees it.</summary>
[Collection("whole process")]
public sealed class MeterTests
{
    [Fact]
    public void Meter_HasTheVersionOfTheLibraryAndInstrumentsOfTheseNames()
    {
        ConcurrentBag<Instrument> instruments = [];
        FilePipeMetrics.MakeMeter();
        using MeterListener listener = new();
        listener.InstrumentPublished = (instrument, _) =>
        {
            if (instrument.Meter.Name == "Pipelines.File")
            {
                instruments.Add(instrument);
            }
        };
        listener.Start();
        string version = typeof(FilePipeReader).Assembly.GetName().Version!.ToString(3);
        Assert.All(instruments, instrument => Assert.Equal(version, instrument.Meter.Version));
        string[] names =
        [
            "pipelines.file.bytes_read",
            "pipelines.file.bytes_written",
            "pipelines.file.fallbacks",
            "pipelines.file.flushes.paused",
            "pipelines.file.pool.allocated",
            "pipelines.file.pool.released",
            "pipelines.file.pool.retained",
            "pipelines.file.reads.handed_over",
            "pipelines.file.reads.inline",
            "pipelines.file.syncs",
            "pipelines.file.waiting.calls",
            "pipelines.file.waiting.duration",
            "pipelines.file.waiting.queued",
            "pipelines.file.waiting.threads",
            "pipelines.file.waiting.under_way",
            "pipelines.file.writes",
        ];
        Assert.Equal(names, instruments.Select(instrument => instrument.Name).Order(StringComparer.Ordinal));
        Assert.All(instruments, instrument => Assert.Equal(instrument.Name != "pipelines.file.waiting.duration", instrument.IsObservable));
    }

    [Fact]
    public async Task Listener_ThatStartsAfterTheFirstFile_HearsWhatWasReadBefore()
    {
        ChildProcess.SkipUnlessLinux("dotnet");
        using TempFolder folder = new();
        string path = folder.File("f", new byte[4096]);
        (int exitCode, string output, string error) = await ChildProcess.RunAsync(ChildProcess.Command("meter", path))
            .WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        Assert.True(exitCode == 0, output + error);

        // As long as nobody can listen, the first file of a process does not wait for the meter.
        Assert.Equal(["not loaded", "4096 bytes"], output.Split('\n', StringSplitOptions.RemoveEmptyEntries));
    }

    [Fact]
    public async Task Durations_ListenerThatThrows_AreAllRecordedByTheApplicationsPool()
    {
        const int Calls = 1000;
        const string Kind = "of this test";
        int recorded = 0;
        int wrong = 0;
        FilePipeMetrics.MakeMeter();
        using MeterListener listener = new();
        listener.InstrumentPublished = (instrument, listener) =>
        {
            if (instrument.Name == "pipelines.file.waiting.duration")
            {
                listener.EnableMeasurementEvents(instrument);
            }
        };
        listener.SetMeasurementEventCallback<double>((_, seconds, tags, _) =>
        {
            // Calls of other tests may be heard as well.
            if ((string?)tags[0].Value == Kind)
            {
                wrong += Thread.CurrentThread.IsThreadPoolThread && seconds is >= 1 and < 1000 ? 0 : 1;
                Interlocked.Increment(ref recorded);
                throw new InvalidOperationException("A listener's own error.");
            }
        });
        listener.Start();
        long aSecondAgo = Stopwatch.GetTimestamp() - Stopwatch.Frequency;
        FilePipeMetrics.Count ended = new();
        Parallel.For(0, Calls, _ => FilePipeMetrics.Waited(Kind, ended, aSecondAgo));
        await Eventually.TrueAsync(() => Volatile.Read(ref recorded) == Calls);
        Assert.Equal(0, wrong);
    }
}
