using System.Globalization;

namespace OneBillionRows;

/// <summary>The same as one would write it first.</summary>
internal static class Simple
{
    public static SortedDictionary<string, Station> Read(string path)
    {
        SortedDictionary<string, Station> all = new(StringComparer.Ordinal);
        Dictionary<string, Station> stations = [];
        foreach (string line in File.ReadLines(path))
        {
            string[] parts = line.Split(';');
            if (!stations.TryGetValue(parts[0], out Station? station))
            {
                all[parts[0]] = stations[parts[0]] = station = new Station();
            }

            station.Add((int)Math.Round(double.Parse(parts[1], CultureInfo.InvariantCulture) * 10));
        }

        return all;
    }
}
