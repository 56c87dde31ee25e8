using System.Globalization;
using System.Runtime.CompilerServices;

namespace OneBillionRows;

/// <summary>The temperatures of a station, in tenths of a degree.</summary>
internal sealed class Station
{
    private long _sum;
    private int _minimum = int.MaxValue;
    private int _maximum = int.MinValue;

    public long Count { get; private set; }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public void Add(int tenths)
    {
        _sum += tenths;
        Count++;
        _minimum = Math.Min(_minimum, tenths);
        _maximum = Math.Max(_maximum, tenths);
    }

    public void Add(Station other)
    {
        _sum += other._sum;
        Count += other.Count;
        _minimum = Math.Min(_minimum, other._minimum);
        _maximum = Math.Max(_maximum, other._maximum);
    }

    /// <summary>Minimum, mean and maximum. The mean is rounded to the nearest tenth; half a tenth, towards plus infinity.</summary>
    public override string ToString()
    {
        decimal mean = Math.Floor(((decimal)_sum / Count) + 0.5m);
        return string.Create(CultureInfo.InvariantCulture, $"{_minimum / 10m:0.0}/{mean / 10m:0.0}/{_maximum / 10m:0.0}");
    }
}
