namespace FilePipelines.Tests;

/// <summary>
/// Random texts, cut in every way that segments, reads and partitions cut them: every way to the lines gives those of string.Split.
/// </summary>
public sealed class LinePropertyTests : FileTests
{
    private static readonly string[] s_pieces =
    [
        "\n",
        "\r\n",
        "\r",
        "a",
        "\u00e9",
        "bc",
        "\0",
        new string('x', 62),
        new string('y', 63),
        new string('z', 300),
    ];

    private static Arbitrary<string> Texts() => Gen.ListOf(Gen.Elements(s_pieces)).Select(string.Concat).ToArbitrary();

    [Fact]
    public void AnyText_CutAnywhere_HasTheLinesOfSplit()
        => Prop.ForAll(Texts(), Gen.Choose(1, 700).ToArbitrary(), (text, size) => ReadAsync(text, size).GetAwaiter().GetResult())
            .Check(Config.QuickThrowOnFailure.WithMaxTest(150).WithEndSize(60));

    [Fact]
    public void AnyText_InAnyNumberOfParts_IsTheFileAndHasItsLines()
        => Prop.ForAll(Texts(), Gen.Choose(1, 40).ToArbitrary(), (text, count) => DivideAsync(text, count).GetAwaiter().GetResult())
            .Check(Config.QuickThrowOnFailure.WithMaxTest(150).WithEndSize(60));

    [Fact]
    public void AnyText_AnyNumberOfLastLines_AreTheLastOfSplit()
        => Prop.ForAll(Texts(), Gen.Choose(0, 40).ToArbitrary(), (text, count) => LastAsync(text, count).GetAwaiter().GetResult())
            .Check(Config.QuickThrowOnFailure.WithMaxTest(150).WithEndSize(60));

    [Fact]
    [Trait("Category", StressTime.Category)]
    public async Task EveryEnd_AtEveryPlaceOfASegmentAndARead_HasTheLinesOfSplit()
    {
        foreach (string end in new[] { "\n", "\r\n", "\r\r\n", "\n\n" })
        {
            // Every place of the larger segment, and the next segment's first ones.
            for (int before = 0; before < 75; before++)
            {
                string text = new string('a', before) + end + new string('b', 70) + end;
                foreach (int size in new[] { 64, 70 })
                {
                    await ReadAsync(text, size);
                }
            }
        }
    }

    private async Task ReadAsync(string text, int size)
    {
        string path = _folder.File("f", Encoding.Latin1.GetBytes(text));
        List<string> lines = LineWays.Split(text);
        foreach (LineWays.Way way in LineWays.All)
        {
            foreach (System.IO.Pipelines.PipeReader reader in LineWays.ReadersOf(path, size))
            {
                Assert.Equal(lines, await way(reader, int.MaxValue, leaveOpen: false, int.MaxValue));
            }
        }
    }

    private async Task DivideAsync(string text, int count)
    {
        byte[] bytes = Encoding.Latin1.GetBytes(text);
        string path = _folder.File("f", bytes);
        foreach (byte separator in "\nax"u8.ToArray())
        {
            FileRange[] ranges = FilePartitions.AtLineEnds(path, count, separator);
            Assert.InRange(ranges.Length, text.Length == 0 ? 0 : 1, text.Length == 0 ? 0 : count);
            long offset = 0;
            foreach (FileRange range in ranges)
            {
                Assert.Equal(offset, range.Offset);
                Assert.True(range.Length > 0 && (offset == 0 || bytes[offset - 1] == separator), $"{range} of {ranges.Length}");
                offset = range.EndOffset;
            }

            Assert.Equal(bytes.Length, offset);
        }

        List<string> lines = [];
        foreach (FileRange range in FilePartitions.AtLineEnds(path, count))
        {
            lines.AddRange(
                await LineWays.BatchesAsync(FilePipeReader.Create(path, new() { Offset = range.Offset, Length = range.Length })));
        }

        Assert.Equal(LineWays.Split(text), lines);
    }

    private async Task LastAsync(string text, int count)
    {
        string path = _folder.File("f", Encoding.Latin1.GetBytes(text));
        List<string> lines = LineWays.Split(text);
        Assert.Equal(lines.Skip(lines.Count - count), await LineWays.LinesAsync(await FilePipeReader.OpenLastLinesAsync(path, count)));
    }
}
