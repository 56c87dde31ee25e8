using LineStats;

namespace FilePipelines.Repository.Tests;

/// <summary>The line splitter of samples/LineStats: the same counts however the bytes are cut.</summary>
public sealed class LineCounterTests
{
    [Theory]
    [InlineData("", 0, 0, 0, 0)]
    [InlineData("\n", 1, 1, 0, 0)]
    [InlineData("\r\n\n\r\r\n", 3, 2, 1, 3)]
    [InlineData("a\nlonger\r\nb", 3, 0, 6, 2)]
    [InlineData("abc\r\ndef\r\n", 2, 0, 3, 1)]
    [InlineData("no end", 1, 0, 6, 1)]
    [InlineData("cr at the end\r", 1, 0, 14, 1)]
    public void Add_InPiecesOfAnySize_CountsTheSame(string text, long lines, long empty, long longest, long number)
    {
        byte[] bytes = Encoding.UTF8.GetBytes(text);
        for (int piece = 1; piece <= bytes.Length + 1; piece++)
        {
            LineCounter counter = new();
            for (int i = 0; i < bytes.Length; i += piece)
            {
                counter.Add(bytes.AsSpan(i, Math.Min(piece, bytes.Length - i)));
            }

            counter.Complete();
            Assert.Equal((bytes.Length, lines, empty, longest, number),
                (counter.Bytes, counter.Lines, counter.EmptyLines, counter.LongestLine, counter.LongestLineNumber));
        }
    }

    [Fact]
    public void Add_InvalidUtf8_IsJustBytes()
    {
        LineCounter counter = new();
        counter.Add([0xFF, 0xC3, 0x0A, 0x80, 0x0A]);
        counter.Complete();
        Assert.Equal((2, 2), (counter.Lines, counter.LongestLine));
    }
}
