using Pipelines.File.Lines;

namespace FilePipelines.Tests;

/// <summary>The ends of all lines of a span: what a search for one after the other finds.</summary>
public sealed class LineIndexTests
{
    [Fact]
    public void Write_AnyLengthsOfLines_FindsEveryLineFeed()
    {
        Gen<int> lengths = Gen.Frequency((3, Gen.Choose(0, 3)), (3, Gen.Choose(0, 40)), (1, Gen.Choose(0, 300)));
        Prop.ForAll(Gen.ListOf(lengths).ToArbitrary(), list =>
        {
            byte[] bytes = Encoding.ASCII.GetBytes(string.Concat(list.Select(length => new string('a', length) + "\n")) + "end");
            Assert.Equal(NaiveEnds(bytes), Ends(bytes));
        }).Check(Config.QuickThrowOnFailure.WithMaxTest(500).WithEndSize(200));
    }

    [Theory]
    [InlineData(0)]
    [InlineData(1)]
    [InlineData(63)]
    [InlineData(64)]
    [InlineData(65)]
    [InlineData(127)]
    [InlineData(128)]
    [InlineData(70_000)]
    public void Write_OnlyLineFeedsOrNone_FindsThem(int length)
    {
        Assert.Equal(Enumerable.Range(0, length), Ends(Enumerable.Repeat((byte)'\n', length).ToArray()));
        Assert.Empty(Ends(new byte[length]));
    }

    [Fact]
    public void Write_EveryNumberOfLineFeedsInABlock_FindsThem()
    {
        Random random = new(1);
        for (int count = 0; count <= 64; count++)
        {
            byte[] bytes = new byte[200];
            foreach (int index in Enumerable.Range(64, 64).OrderBy(_ => random.Next()).Take(count))
            {
                bytes[index] = (byte)'\n';
            }

            Assert.Equal(NaiveEnds(bytes), Ends(bytes));
        }
    }

    [Fact]
    public void Write_LongLinesBetweenShortOnes_FindsEveryLineFeed()
    {
        string shortLines = string.Concat(Enumerable.Repeat("a\n", 5000));
        for (int length = 4090; length < 4100; length++)
        {
            string text = $"{shortLines}{new string('b', 300 * length)}\n{shortLines}{new string('c', length)}";
            Assert.Equal(NaiveEnds(Encoding.ASCII.GetBytes(text)), Ends(Encoding.ASCII.GetBytes(text)));
        }
    }

    [Theory]
    [InlineData("\n", 0, 0, "")]
    [InlineData("\r\n", 0, 1, "")]
    [InlineData("a\r\n", 0, 2, "a")]
    [InlineData("\r\n\n", 2, 2, "")]
    [InlineData("a\r\r\n", 0, 3, "a\r")]
    public void Line_OfAnyEnd_IsWithoutIt(string text, int start, int end, string line)
        => Assert.Equal(line, Encoding.ASCII.GetString(LineIndex.Line(Encoding.ASCII.GetBytes(text), start, end)));

    private static int[] Ends(byte[] bytes)
    {
        int[] ends = [];
        int count = LineIndex.Write(bytes, ref ends);
        Assert.Equal(-1, ends[0]);
        int[] found = ends[1..(count + 1)];
        LineIndex.Release(ref ends);
        Assert.Empty(ends);
        return found;
    }

    private static IEnumerable<int> NaiveEnds(byte[] bytes) => Enumerable.Range(0, bytes.Length).Where(i => bytes[i] == '\n');
}
