using System.Text;
using Pipelines.File;

namespace OneBillionRows;

/// <summary>Makes a file of rows, which depends on nothing but their number.</summary>
internal static class Measurements
{
    private const int Seed = 2024;
    private const int RowsPerFlush = 4096;

    private static readonly string[] s_names =
    [
        "Abéché", "Accra", "Addis Ababa", "Adelaide", "Algiers", "Amsterdam", "Anchorage", "Ankara", "Antananarivo", "Athens", "Auckland",
        "Baghdad", "Bangkok", "Barcelona", "Beijing", "Belgrade", "Bergen", "Bogotá", "Brasília", "Bratislava", "Brisbane", "Brussels",
        "Bucharest", "Budapest", "Cairo", "Calgary", "Canberra", "Cape Town", "Chicago", "Chişinău", "Cracow", "Dakar", "Damascus",
        "Darwin", "Delhi", "Dhaka", "Dublin", "Edinburgh", "El Paso", "Fairbanks", "Frankfurt", "Geneva", "Hamburg", "Hanoi", "Harare",
        "Helsinki", "Ho Chi Minh City", "Hong Kong", "Honolulu", "Istanbul", "Jakarta", "Jerusalem", "Kabul", "Kraków", "Kyiv", "La Paz",
        "Las Palmas de Gran Canaria", "Lima", "Lisbon", "London", "Luanda", "Lyon", "Madrid", "Malé", "Managua", "Manila", "Melbourne",
        "Mexico City", "Miami", "Minsk", "Montreal", "Moscow", "Mumbai", "Nairobi", "New York City", "Nuuk", "Oslo", "Ottawa", "Palermo",
        "Paris", "Perth", "Prague", "Pretoria", "Pyongyang", "Reykjavík", "Riga", "Rome", "San José", "Santo Domingo", "Sarajevo", "Seoul",
        "Singapore", "Skopje", "Sofia", "St. John's", "Stockholm", "Sydney", "São Paulo", "Tallinn", "Tbilisi", "Tehran", "Tokyo",
        "Toronto", "Tromsø", "Tunis", "Ürümqi", "Vienna", "Vilnius", "Warsaw", "Washington, D.C.", "Yerevan", "Zagreb", "Zürich", "İzmir",
    ];

    /// <summary>Writes the rows; reports how many, one part after the other.</summary>
    public static async Task MakeAsync(string path, long rows, Action<long> progress, CancellationToken cancellationToken)
    {
        byte[][] names = [.. s_names.Select(name => Encoding.UTF8.GetBytes(name + ";"))];
        byte[][] temperatures = [.. Enumerable.Range(-999, 1999)
            .Select(tenths => Encoding.UTF8.GetBytes(FormattableString.Invariant($"{tenths / 10m:0.0}\n")))];
        int longest = names.Max(name => name.Length) + temperatures.Max(temperature => temperature.Length);
        Random random = new(Seed);
        FilePipeWriter writer = FilePipeWriter.Create(path);
        try
        {
            while (rows > 0)
            {
                int some = (int)Math.Min(rows, RowsPerFlush);
                Span<byte> memory = writer.GetSpan(some * longest);
                int length = 0;
                for (int i = 0; i < some; i++)
                {
                    // About the same climate all year: the mean of two throws, around that of the station.
                    int station = random.Next(names.Length);
                    int temperature = ((random.Next(1000) + random.Next(1000)) / 2) + (station * 8);
                    names[station].CopyTo(memory[length..]);
                    length += names[station].Length;
                    temperatures[temperature].CopyTo(memory[length..]);
                    length += temperatures[temperature].Length;
                }

                writer.Advance(length);
                await writer.FlushAsync(cancellationToken);
                progress(some);
                rows -= some;
            }

            await writer.CompleteAsync();
        }
        catch
        {
            writer.Abort();
            File.Delete(path);
            throw;
        }
    }
}
