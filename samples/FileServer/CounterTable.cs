using System.Collections.Concurrent;
using System.Diagnostics.Metrics;
using System.Globalization;
using System.Text;

namespace FileServerSample;

/// <summary>What the counters of the meter "Pipelines.File" have counted, and what it shows now, as Prometheus reads it.</summary>
internal sealed class CounterTable : IDisposable
{
    private readonly MeterListener _listener = new();
    private readonly ConcurrentDictionary<Instrument, Values> _instruments = new();

    internal CounterTable()
    {
        _listener.InstrumentPublished = (instrument, listener) =>
        {
            if (instrument.Meter.Name == "Pipelines.File")
            {
                listener.EnableMeasurementEvents(instrument, _instruments.GetOrAdd(instrument, static _ => new Values()));
            }
        };
        _listener.SetMeasurementEventCallback<long>(static (instrument, value, tags, state) =>
        {
            if (instrument.IsObservable)
            {
                ((Values)state!).Set(value);
            }
            else
            {
                ((Values)state!).Add(value, tags);
            }
        });
        _listener.Start();
    }

    public void Dispose() => _listener.Dispose();

    internal string ToPrometheus()
    {
        _listener.RecordObservableInstruments();
        StringBuilder text = new();
        foreach ((Instrument instrument, Values values) in _instruments.OrderBy(pair => pair.Key.Name, StringComparer.Ordinal))
        {
            string name = instrument.Name.Replace('.', '_') + (instrument.IsObservable ? string.Empty : "_total");
            text.Append(CultureInfo.InvariantCulture, $"# HELP {name} {instrument.Description}\n# TYPE {name} {(instrument.IsObservable ? "gauge" : "counter")}\n");
            foreach ((string labels, long value) in values.Read())
            {
                text.Append(CultureInfo.InvariantCulture, $"{name}{labels} {value}\n");
            }
        }

        return text.ToString();
    }

    private sealed class Values
    {
        private readonly ConcurrentDictionary<string, long> _labelled = new();
        private long _plain;

        internal void Set(long value) => Interlocked.Exchange(ref _plain, value);

        internal void Add(long value, ReadOnlySpan<KeyValuePair<string, object?>> tags)
        {
            if (tags.IsEmpty)
            {
                Interlocked.Add(ref _plain, value);
                return;
            }

            string labels = "{" + string.Join(',', tags.ToArray().Select(tag => $"{tag.Key}=\"{tag.Value}\"")) + "}";
            _labelled.AddOrUpdate(labels, value, (_, sum) => sum + value);
        }

        internal IEnumerable<(string Labels, long Value)> Read()
            => _labelled.IsEmpty ? [("", Interlocked.Read(ref _plain))] : _labelled.OrderBy(pair => pair.Key, StringComparer.Ordinal).Select(pair => (pair.Key, pair.Value));
    }
}
