using System.Collections.Concurrent;
using System.Diagnostics.Metrics;
using System.Globalization;
using System.Text;
using Pipelines.File;

namespace FileServerSample;

/// <summary>What the instruments of the meter "Pipelines.File" tell that are observable, as Prometheus reads it.</summary>
internal sealed class CounterTable : IDisposable
{
    private readonly MeterListener _listener = new();
    private readonly ConcurrentDictionary<Instrument, ConcurrentDictionary<string, double>> _instruments = new();

    internal CounterTable()
    {
        _listener.InstrumentPublished = (instrument, listener) =>
        {
            if (instrument.Meter.Name == "Pipelines.File" && instrument.IsObservable)
            {
                listener.EnableMeasurementEvents(
                    instrument, _instruments.GetOrAdd(instrument, static _ => new ConcurrentDictionary<string, double>()));
            }
        };
        _listener.SetMeasurementEventCallback<long>(
            static (_, value, tags, state) => ((ConcurrentDictionary<string, double>)state!)[Labels(tags)] = value);
        _listener.SetMeasurementEventCallback<double>(
            static (_, value, tags, state) => ((ConcurrentDictionary<string, double>)state!)[Labels(tags)] = value);
        _listener.Start();
    }

    public void Dispose() => _listener.Dispose();

    internal string ToPrometheus()
    {
        _listener.RecordObservableInstruments();
        StringBuilder text = new();

        // Copies: LINQ asks for the count first, and fails if more has come when it copies.
        foreach ((Instrument instrument, ConcurrentDictionary<string, double> values)
            in _instruments.ToArray().OrderBy(pair => pair.Key.Name, StringComparer.Ordinal))
        {
            bool isLevel = instrument is ObservableUpDownCounter<long>;
            string name = instrument.Name.Replace('.', '_') + (isLevel ? string.Empty : "_total");
            text.Append(CultureInfo.InvariantCulture,
                $"# HELP {name} {instrument.Description}\n# TYPE {name} {(isLevel ? "gauge" : "counter")}\n");
            foreach ((string labels, double value)
                in values.ToArray().DefaultIfEmpty(new(string.Empty, 0)).OrderBy(pair => pair.Key, StringComparer.Ordinal))
            {
                text.Append(CultureInfo.InvariantCulture, $"{name}{(labels.Length == 0 ? labels : "{" + labels + "}")} {value:R}\n");
            }
        }

        return text.ToString();
    }

    private static string Labels(ReadOnlySpan<KeyValuePair<string, object?>> tags)
        => tags.IsEmpty ? string.Empty : string.Join(',', tags.ToArray().Select(tag => $"{tag.Key}=\"{tag.Value}\""));
}
