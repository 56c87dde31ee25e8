using System.Collections.Concurrent;
using System.Diagnostics.Metrics;
using Pipelines.File.Diagnostics;

namespace FilePipelines.Tests;

/// <summary>What the counters of the library have counted since this was made, and the levels of now.</summary>
public sealed class Counters : IDisposable
{
    // Of instruments that are observed: what was told last, and what was told when this was made, by instrument and tags.
    private readonly ConcurrentDictionary<(Instrument Instrument, string Tags), double> _observed = new();
    private readonly Dictionary<(Instrument Instrument, string Tags), double> _before;
    private readonly ConcurrentDictionary<(Instrument Instrument, string Tags), double> _counted = new();
    private readonly MeterListener _listener = new();

    public Counters()
    {
        // The library makes its meter some time after it has begun to count.
        FilePipeMetrics.MakeMeter();
        _listener.InstrumentPublished = (instrument, listener) =>
        {
            if (instrument.Meter.Name == "Pipelines.File")
            {
                listener.EnableMeasurementEvents(instrument);
            }
        };
        _listener.SetMeasurementEventCallback<long>((instrument, value, tags, _) => Add(instrument, value, tags));
        _listener.SetMeasurementEventCallback<double>((instrument, value, tags, _) => Add(instrument, value, tags));
        _listener.Start();
        _listener.RecordObservableInstruments();
        _before = new(_observed);
    }

    public long this[string name]
    {
        get
        {
            _listener.RecordObservableInstruments();
            return (long)(_counted.Where(pair => Is(pair.Key.Instrument)).Sum(pair => pair.Value)
                + _observed.Where(pair => Is(pair.Key.Instrument))
                    .Sum(pair => pair.Value - (IsLevel(pair.Key.Instrument) ? 0 : _before.GetValueOrDefault(pair.Key))));

            bool Is(Instrument instrument) => instrument.Name == "pipelines.file." + name;
        }
    }

    /// <summary>The tags with which an instrument has counted since this was made.</summary>
    public IReadOnlyCollection<string> Kinds(string name)
    {
        _listener.RecordObservableInstruments();
        return [.. _observed.Where(pair => pair.Key.Instrument.Name == "pipelines.file." + name
            && pair.Value > _before.GetValueOrDefault(pair.Key)).Select(pair => pair.Key.Tags).Distinct().Order(StringComparer.Ordinal)];
    }

    /// <summary>What fell back: the call and the error, such as "preadv2 38".</summary>
    public IReadOnlyCollection<string> Fallbacks
    {
        get
        {
            _listener.RecordObservableInstruments();
            return [.. _observed.Where(pair => pair.Key.Instrument.Name == "pipelines.file.fallbacks"
                && pair.Value > _before.GetValueOrDefault(pair.Key)).Select(pair => pair.Key.Tags)];
        }
    }

    public void Dispose() => _listener.Dispose();

    private static bool IsLevel(Instrument instrument) => instrument is ObservableUpDownCounter<long>;

    private void Add(Instrument instrument, double value, ReadOnlySpan<KeyValuePair<string, object?>> tags)
    {
        (Instrument, string) key = (instrument, string.Join(' ', tags.ToArray().Select(tag => tag.Value)));
        if (instrument.IsObservable)
        {
            _observed[key] = value;
        }
        else
        {
            _counted.AddOrUpdate(key, value, (_, sum) => sum + value);
        }
    }
}
