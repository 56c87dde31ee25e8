using System.Collections.Concurrent;
using System.Diagnostics.Metrics;
using System.Globalization;
using System.Text;

namespace FileServerSample;

/// <summary>What the instruments of the meter "Pipelines.File" have told, as Prometheus reads it.</summary>
internal sealed class CounterTable : IDisposable
{
    private readonly MeterListener _listener = new();
    private readonly ConcurrentDictionary<Instrument, InstrumentValues> _instruments = new();

    internal CounterTable()
    {
        _listener.InstrumentPublished = (instrument, listener) =>
        {
            if (instrument.Meter.Name == "Pipelines.File")
            {
                listener.EnableMeasurementEvents(instrument, _instruments.GetOrAdd(instrument, static instrument => instrument switch
                {
                    Histogram<double> histogram => new HistogramValues(histogram),
                    ObservableUpDownCounter<long> => new GaugeValues(),
                    ObservableCounter<long> => new ObservedCounterValues(),
                    _ => new CounterValues(),
                }));
            }
        };
        _listener.SetMeasurementEventCallback<long>(static (_, value, tags, state) => ((InstrumentValues)state!).Add(value, Labels(tags)));
        _listener.SetMeasurementEventCallback<double>(static (_, value, tags, state) => ((InstrumentValues)state!).Add(value, Labels(tags)));
        _listener.Start();
    }

    public void Dispose() => _listener.Dispose();

    internal string ToPrometheus()
    {
        _listener.RecordObservableInstruments();
        StringBuilder text = new();
        foreach ((Instrument instrument, InstrumentValues values) in _instruments.OrderBy(pair => pair.Key.Name, StringComparer.Ordinal))
        {
            string name = instrument.Name.Replace('.', '_') + values.Suffix;
            text.Append(CultureInfo.InvariantCulture, $"# HELP {name} {instrument.Description}\n# TYPE {name} {values.Type}\n");
            values.Write(name, text);
        }

        return text.ToString();
    }

    private static string Labels(ReadOnlySpan<KeyValuePair<string, object?>> tags)
        => tags.IsEmpty ? string.Empty : string.Join(',', tags.ToArray().Select(tag => $"{tag.Key}=\"{tag.Value}\""));

    private abstract class InstrumentValues
    {
        internal abstract string Type { get; }

        internal virtual string Suffix => string.Empty;

        internal abstract void Add(double value, string labels);

        internal abstract void Write(string name, StringBuilder text);
    }

    private class CounterValues : InstrumentValues
    {
        private readonly ConcurrentDictionary<string, double> _values = new();

        internal override string Type => "counter";

        internal override string Suffix => "_total";

        internal override void Add(double value, string labels) => _values.AddOrUpdate(labels, value, (_, sum) => Combine(sum, value));

        internal override void Write(string name, StringBuilder text)
        {
            foreach ((string labels, double value) in _values.DefaultIfEmpty(new(string.Empty, 0)).OrderBy(pair => pair.Key, StringComparer.Ordinal))
            {
                text.Append(CultureInfo.InvariantCulture, $"{name}{(labels.Length == 0 ? labels : "{" + labels + "}")} {value:R}\n");
            }
        }

        private protected virtual double Combine(double sum, double value) => sum + value;
    }

    /// <summary>What is observed is the sum itself.</summary>
    private class ObservedCounterValues : CounterValues
    {
        private protected override double Combine(double sum, double value) => value;
    }

    private sealed class GaugeValues : ObservedCounterValues
    {
        internal override string Type => "gauge";

        internal override string Suffix => string.Empty;
    }

    /// <summary>Counts by the boundaries that the instrument advises; the lock of each label's counts guards them.</summary>
    private sealed class HistogramValues(Histogram<double> histogram) : InstrumentValues
    {
        private readonly double[] _boundaries = [.. histogram.Advice?.HistogramBucketBoundaries ?? []];
        private readonly ConcurrentDictionary<string, Counts> _values = new();

        internal override string Type => "histogram";

        internal override string Suffix => "_seconds";

        internal override void Add(double value, string labels)
        {
            Counts counts = _values.GetOrAdd(labels, _ => new Counts(_boundaries.Length + 1));
            int bucket = Array.FindIndex(_boundaries, boundary => value <= boundary);
            lock (counts)
            {
                counts.Buckets[bucket < 0 ? _boundaries.Length : bucket]++;
                counts.Sum += value;
            }
        }

        internal override void Write(string name, StringBuilder text)
        {
            foreach ((string labels, Counts counts) in _values.OrderBy(pair => pair.Key, StringComparer.Ordinal))
            {
                lock (counts)
                {
                    string before = labels.Length == 0 ? string.Empty : labels + ",";
                    string after = labels.Length == 0 ? string.Empty : "{" + labels + "}";
                    long sum = 0;
                    for (int i = 0; i < counts.Buckets.Length; i++)
                    {
                        sum += counts.Buckets[i];
                        string boundary = i < _boundaries.Length ? _boundaries[i].ToString("R", CultureInfo.InvariantCulture) : "+Inf";
                        text.Append(CultureInfo.InvariantCulture, $"{name}_bucket{{{before}le=\"{boundary}\"}} {sum}\n");
                    }

                    text.Append(CultureInfo.InvariantCulture, $"{name}_sum{after} {counts.Sum:R}\n{name}_count{after} {sum}\n");
                }
            }
        }

        private sealed class Counts(int buckets)
        {
            internal long[] Buckets { get; } = new long[buckets];

            internal double Sum { get; set; }
        }
    }
}
