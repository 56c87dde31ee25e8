using System.Collections.Concurrent;
using System.Diagnostics.Metrics;

namespace FileSendingTests;

/// <summary>What the counters of the library have counted since it was made.</summary>
public sealed class Counters : IDisposable
{
    private readonly ConcurrentDictionary<string, long> _values = new();
    private readonly MeterListener _listener = new();

    public Counters()
    {
        _listener.InstrumentPublished = (instrument, listener) =>
        {
            if (instrument.Meter.Name == "Pipelines.File")
            {
                listener.EnableMeasurementEvents(instrument);
            }
        };
        _listener.SetMeasurementEventCallback<long>((instrument, value, _, _) => _values.AddOrUpdate(instrument.Name, value, (_, sum) => sum + value));
        _listener.Start();
    }

    public long this[string name] => _values.GetValueOrDefault("pipelines.file." + name);

    public void Dispose() => _listener.Dispose();
}
