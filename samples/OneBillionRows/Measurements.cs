using System.Globalization;
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

    /// <summary>Writes the rows. If that fails, there is no file, or the one that was there before.</summary>
    public static async Task MakeAsync(string path, long rows)
    {
        Random random = new(Seed);
        await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });
        for (long row = 1; row <= rows; row++)
        {
            // About the same climate all year: the mean of two throws, around that of the station.
            int station = random.Next(s_names.Length);
            int tenths = ((random.Next(1000) + random.Next(1000)) / 2) + (station * 8) - 999;
            Encoding.UTF8.GetBytes(string.Create(CultureInfo.InvariantCulture, $"{s_names[station]};{tenths / 10m:0.0}\n"), writer);
            if (row % RowsPerFlush == 0)
            {
                await writer.FlushAsync();
            }
        }

        await writer.CompleteAsync();
    }
}
