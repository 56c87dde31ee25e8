using System.Globalization;

namespace OneBillionRows;

/// <summary>The temperatures of a station, in tenths of a degree.</summary>
internal sealed class Station
{
    private int _minimum = int.MaxValue;
    private int _maximum = int.MinValue;
    private long _sum;

    public long Count { get; private set; }

    public void Add(int tenths)
    {
        _minimum = Math.Min(_minimum, tenths);
        _maximum = Math.Max(_maximum, tenths);
        _sum += tenths;
        Count++;
    }

    public void Add(Station other)
    {
        _minimum = Math.Min(_minimum, other._minimum);
        _maximum = Math.Max(_maximum, other._maximum);
        _sum += other._sum;
        Count += other.Count;
    }

    /// <summary>Minimum, mean and maximum.</summary>
    public override string ToString()
        => string.Create(CultureInfo.InvariantCulture,
            $"{_minimum / 10m:0.0}/{Math.Round(_sum / 10m / Count, 1, MidpointRounding.ToPositiveInfinity):0.0}/{_maximum / 10m:0.0}");
}
