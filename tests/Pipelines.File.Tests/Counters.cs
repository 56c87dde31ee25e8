using System.Collections.Concurrent;
using System.Diagnostics.Metrics;

namespace FilePipelinesTests;

/// <summary>What the counters of the library have counted since it was made, and what is to be observed now.</summary>
public sealed class Counters : IDisposable
{
    private readonly ConcurrentDictionary<string, long> _values = new();
    private readonly ConcurrentQueue<string> _fallbacks = new();
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
        _listener.SetMeasurementEventCallback<long>((instrument, value, tags, _) =>
        {
            _values.AddOrUpdate(instrument.Name, value, (_, sum) => instrument.IsObservable ? value : sum + value);
            if (instrument.Name == "pipelines.file.fallbacks")
            {
                _fallbacks.Enqueue(string.Join(' ', tags.ToArray().Select(tag => tag.Value)));
            }
        });
        _listener.Start();
    }

    public long this[string name]
    {
        get
        {
            _listener.RecordObservableInstruments();
            return _values.GetValueOrDefault("pipelines.file." + name);
        }
    }

    /// <summary>What fell back: the call and the error, such as "preadv2 38".</summary>
    public IReadOnlyCollection<string> Fallbacks => _fallbacks;

    public void Dispose() => _listener.Dispose();
}
