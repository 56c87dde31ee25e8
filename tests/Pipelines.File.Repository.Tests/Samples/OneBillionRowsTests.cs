using OneBillionRows;

namespace FilePipelines.Repository.Tests;

/// <summary>
/// The one billion row challenge as its rules and its own test files have it: short and long names, UTF-8, ten thousand names, the
/// limits of temperatures, and means halfway between two tenths.
/// </summary>
public sealed class OneBillionRowsTests : IDisposable
{
    private readonly TempFolder _folder = new();

    public void Dispose() => _folder.Dispose();

    [Theory]
    [InlineData("", "")]
    [InlineData("a;1.0", "a=1.0/1.0/1.0")]
    [InlineData("a;1.0\nb;1.0\nb;2.0\n", "a=1.0/1.0/1.0, b=1.0/1.5/2.0")]
    [InlineData(".;1.0\n-;1.0\n-;2.0\n", "-=1.0/1.5/2.0, .=1.0/1.0/1.0")]
    [InlineData("Bosaso;-99.9\nPetropavlovsk-Kamchatsky;99.9\n", "Bosaso=-99.9/-99.9/-99.9, Petropavlovsk-Kamchatsky=99.9/99.9/99.9")]
    [InlineData("a;-1.0\nab;-12.3\nabc;0.0\nabcd;-0.0\n", "a=-1.0/-1.0/-1.0, ab=-12.3/-12.3/-12.3, abc=0.0/0.0/0.0, abcd=0.0/0.0/0.0")]
    [InlineData("a;0.1\na;0.2\n", "a=0.1/0.2/0.2")]
    [InlineData("a;-0.1\na;-0.2\n", "a=-0.2/-0.1/-0.1")]
    [InlineData("a;26.5\na;26.5\na;26.5\na;26.5\na;26.7\n", "a=26.5/26.5/26.7")]
    [InlineData("a;0.1\na;0.0\na;0.0\n", "a=0.0/0.0/0.1")]
    [InlineData("b;1.0\nB;2.0\n\u00e9;3.0\n\U0001F41D;4.0\n", "B=2.0/2.0/2.0, b=1.0/1.0/1.0, \u00e9=3.0/3.0/3.0, \U0001F41D=4.0/4.0/4.0")]
    [InlineData("a;1;2.0\n", "a;1=2.0/2.0/2.0")]
    [InlineData("a;1.0\r\nb;-12.3\r\n", "a=1.0/1.0/1.0, b=-12.3/-12.3/-12.3")]
    [InlineData("a name of thirty-one bytes, yes;1.0\na name of thirty-two bytes, yes!;2.0\n",
        "a name of thirty-one bytes, yes=1.0/1.0/1.0, a name of thirty-two bytes, yes!=2.0/2.0/2.0")]
    public async Task Read_Rows_AreThoseOfTheChallenge(string rows, string expected)
    {
        Assert.Equal(expected, await ReadAsync(rows));

        // The same rows many times: the quick way takes those that are not near the end of a segment.
        string line = rows.Length == 0 || rows.EndsWith('\n') ? rows : rows + "\n";
        Assert.Equal(expected, await ReadAsync(string.Concat(Enumerable.Repeat(line, 1000))));
    }

    [Fact]
    public async Task Read_EveryTemperature_IsThatOfItsText()
    {
        string[] texts = [.. Enumerable.Range(-999, 1999).Select(tenths => string.Create(
            CultureInfo.InvariantCulture, $"{tenths / 10m:0.0}"))];
        string rows = string.Concat(texts.Select(text => $"station {text};{text}\n"));
        string expected = string.Join(", ", texts.Select(text => $"station {text}={text}/{text}/{text}").Order(StringComparer.Ordinal));
        Assert.Equal(expected, await ReadAsync(rows));
    }

    [Fact]
    public async Task Read_NamesOfEveryLength_AreToldApart()
    {
        // For each length names that differ in one byte, at each place.
        List<string> names = [];
        for (int length = 1; length <= 100; length += length < 20 ? 1 : 16)
        {
            names.Add(new string('x', length));
            names.AddRange(Enumerable.Range(0, length).Select(i => new string('x', i) + "y" + new string('x', length - i - 1)));
        }

        await CheckAsync(names, rows: 20_000);
    }

    [Fact]
    public async Task Read_TenThousandNames_AreToldApart()
    {
        Random random = new(1);
        HashSet<string> names = [];
        names.Add("n");
        while (names.Count < 40_000)
        {
            names.Add(string.Concat(Enumerable.Range(0, random.Next(1, 30)).Select(_ => (char)random.Next('<', 0x250))));
        }

        await CheckAsync([.. names], rows: 120_000);
    }

    [Theory]
    [InlineData("no semicolon")]
    [InlineData("a;1")]
    [InlineData("a;x.0")]
    [InlineData("a;1.x")]
    [InlineData("a;1-0")]
    [InlineData(";1.0")]
    [InlineData("")]
    [InlineData("station;123.4")]
    [InlineData("station;--1.0")]
    [InlineData("station;-12.3.4")]
    [InlineData("station;1.0 ")]
    [InlineData("station;1,0")]
    [InlineData("station;a1.0")]
    [InlineData("a name that is much longer than thirty-one bytes;1.")]
    public async Task Read_WhatIsNoRow_Throws(string row)
    {
        FormatException e = await Assert.ThrowsAsync<FormatException>(() => ReadAsync("good;1.0\n" + row + "\nlast;1.0\n"));
        Assert.Contains(_folder.File("rows"), e.Message, StringComparison.Ordinal);

        // Among many, so that the quick way meets it.
        string good = string.Concat(Enumerable.Repeat("good;1.0\n", 100));
        await Assert.ThrowsAsync<FormatException>(() => ReadAsync(good + row + "\n" + good));
    }

    [Theory]
    [InlineData(100_000), InlineData(3_000_000)]
    public async Task Read_RowOverManySegments_Throws(int length)
    {
        FormatException e = await Assert.ThrowsAsync<FormatException>(
            () => ReadAsync("good;1.0\n" + new string('x', length) + "\nlast;1.0\n"));
        Assert.InRange(e.Message.Length, 1, 1000);
    }

    private static string Join(IEnumerable<KeyValuePair<string, Station>> stations)
        => string.Join(", ", stations.Select(station => $"{station.Key}={station.Value}"));

    private async Task CheckAsync(List<string> names, int rows)
    {
        Random random = new(2);
        string[] lines = [.. Enumerable.Range(0, rows).Select(_ =>
            string.Create(CultureInfo.InvariantCulture, $"{names[random.Next(names.Count)]};{random.Next(-999, 1000) / 10m:0.0}"))];
        string expected = string.Join(", ", lines.Select(line => line.Split(';')).GroupBy(parts => parts[0], StringComparer.Ordinal)
            .OrderBy(group => group.Key, StringComparer.Ordinal).Select(group =>
            {
                decimal[] values = [.. group.Select(parts => decimal.Parse(parts[1], CultureInfo.InvariantCulture))];
                decimal mean = Math.Floor((values.Average() * 10) + 0.5m) / 10;
                return string.Create(CultureInfo.InvariantCulture, $"{group.Key}={values.Min():0.0}/{mean:0.0}/{values.Max():0.0}");
            }));
        Assert.Equal(expected, await ReadAsync(string.Join('\n', lines)));
    }

    private async Task<string> ReadAsync(string rows)
    {
        string path = _folder.File("rows", Encoding.UTF8.GetBytes(rows));
        string one = Join(await StationTable.ReadAsync(path, threads: 1));
        Assert.Equal(one, Join(await StationTable.ReadAsync(path, threads: 3)));
        return one;
    }
}
