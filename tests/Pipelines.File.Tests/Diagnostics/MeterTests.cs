using System.Collections.Concurrent;
using System.Diagnostics;
using System.Diagnostics.Metrics;
using System.Reflection;
using Pipelines.File;
using Pipelines.File.Diagnostics;

namespace FilePipelinesTests;

/// <summary>The meter as a listener sees it.</summary>
[Collection("whole process")]
public sealed class MeterTests
{
    [Fact]
    public void Meter_HasTheVersionOfTheLibraryAndInstrumentsThatTheConstantsName()
    {
        ConcurrentBag<Instrument> instruments = [];
        FilePipeMetrics.MakeMeter();
        using MeterListener listener = new();
        listener.InstrumentPublished = (instrument, _) =>
        {
            if (instrument.Meter.Name == FilePipeMeter.Name)
            {
                instruments.Add(instrument);
            }
        };
        listener.Start();
        Assert.All(instruments, instrument => Assert.Equal(FilePipeMeter.Version, instrument.Meter.Version));
        Assert.Equal(typeof(FilePipeReader).Assembly.GetName().Version!.ToString(3), FilePipeMeter.Version);
        IEnumerable<string> names = typeof(FilePipeMeter).GetFields(BindingFlags.Public | BindingFlags.Static)
            .Where(field => field.IsLiteral && field.Name != nameof(FilePipeMeter.Name))
            .Select(field => (string)field.GetRawConstantValue()!);
        Assert.Equal(names.Order(StringComparer.Ordinal), instruments.Select(instrument => instrument.Name).Order(StringComparer.Ordinal));
        Assert.All(instruments, instrument => Assert.Equal(instrument.Name != FilePipeMeter.WaitingDuration, instrument.IsObservable));
    }

    [Fact]
    public async Task Durations_ListenerThatThrows_AreAllRecordedByTheApplicationsPool()
    {
        const int Calls = 1000;
        int recorded = 0;
        int wrong = 0;
        FilePipeMetrics.MakeMeter();
        using MeterListener listener = new();
        listener.InstrumentPublished = (instrument, listener) =>
        {
            if (instrument.Name == FilePipeMeter.WaitingDuration)
            {
                listener.EnableMeasurementEvents(instrument);
            }
        };
        listener.SetMeasurementEventCallback<double>((_, seconds, tags, _) =>
        {
            // Other tests of this process may be heard as well: only looks at followed names are this one's.
            if ((string?)tags[0].Value == "look")
            {
                wrong += Thread.CurrentThread.IsThreadPoolThread && seconds is >= 1 and < 1000 ? 0 : 1;
                Interlocked.Increment(ref recorded);
                throw new InvalidOperationException("A listener's own error.");
            }
        });
        listener.Start();
        long aSecondAgo = Stopwatch.GetTimestamp() - Stopwatch.Frequency;
        Parallel.For(0, Calls, _ => FilePipeMetrics.Waited("look", FilePipeMetrics.WaitsOf("look"), aSecondAgo));
        await Eventually.TrueAsync(() => Volatile.Read(ref recorded) == Calls);
        Assert.Equal(0, wrong);
    }
}
