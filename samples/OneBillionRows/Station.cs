using System.Globalization;

namespace OneBillionRows;

/// <summary>The temperatures of a station, in tenths of a degree.</summary>
internal sealed class Station
{
    private int _minimum = int.MaxValue;
    private int _maximum = int.MinValue;
    private long _sum;

    public long Count { get; private set; }

    public void Add(int tenths) => Add(tenths, tenths, tenths, count: 1);

    public void Add(Station other) => Add(other._minimum, other._maximum, other._sum, other.Count);

    public void Add(int minimum, int maximum, long sum, long count)
    {
        _minimum = Math.Min(_minimum, minimum);
        _maximum = Math.Max(_maximum, maximum);
        _sum += sum;
        Count += count;
    }

    /// <summary>Minimum, mean and maximum. The mean is rounded to the nearest tenth; half a tenth, towards plus infinity.</summary>
    public override string ToString()
    {
        long mean = (long)Math.Floor(((2 * _sum) + Count) / (2m * Count));
        return string.Create(CultureInfo.InvariantCulture, $"{_minimum / 10m:0.0}/{mean / 10m:0.0}/{_maximum / 10m:0.0}");
    }
}
