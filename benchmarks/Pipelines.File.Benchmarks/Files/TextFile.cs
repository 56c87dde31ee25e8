using System.Text;

namespace FilePipelines.Benchmarks;

/// <summary>A text file of lines that are the same on every machine, and what a parser makes of it. Deleted when it is disposed.</summary>
internal sealed class TextFile : IDisposable
{
    private static readonly string[] s_words =
    [
        "file", "pipe", "segment", "flush", "offset", "handle", "buffer", "page", "cache", "write", "read", "ahead",
    ];

    private byte[]? _content;

    private TextFile(string path, long length, long answer)
    {
        Path = path;
        Length = length;
        Answer = answer;
    }

    internal string Path { get; }

    /// <summary>Bytes.</summary>
    internal long Length { get; }

    /// <summary>What its parser finds, known from making it.</summary>
    internal long Answer { get; }

    /// <summary>All of it in memory, read once and not part of what is measured.</summary>
    internal ReadOnlyMemory<byte> Content => _content ??= File.ReadAllBytes(Path);

    /// <summary>Log-like lines of 0 to about 200 bytes, for <see cref="LineParser"/>.</summary>
    internal static TextFile MakeLines(TemporaryFolder folder, long length)
        => Make<LineParser>(folder.PathOf("lines.txt"), length, static (random, _) =>
        {
            StringBuilder line = new();
            for (int words = random.Next(0, 25); words > 0; words--)
            {
                line.Append(s_words[random.Next(s_words.Length)]).Append(' ');
            }

            return line.ToString();
        });

    /// <summary>For <see cref="NdjsonParser"/>.</summary>
    internal static TextFile MakeNdjson(TemporaryFolder folder, long length)
        => Make<NdjsonParser>(folder.PathOf("events.ndjson"), length, static (random, row) => string.Create(
            CultureInfo.InvariantCulture,
            $$"""{"id":{{row}},"method":"{{(random.Next(4) == 0 ? "POST" : "GET")}}","path":"/{{s_words[random.Next(s_words.Length)]}}"""
            + $$"""/{{random.Next(100_000)}}","status":{{(random.Next(20) == 0 ? 404 : 200)}},"bytes":{{random.Next(1_000_000)}}}"""));

    /// <summary>For <see cref="CsvParser"/>.</summary>
    internal static TextFile MakeCsv(TemporaryFolder folder, long length)
        => Make<CsvParser>(folder.PathOf("rows.csv"), length, static (random, row) => string.Create(
            CultureInfo.InvariantCulture,
            $"{row},{(random.Next(4) == 0
                ? $"\"{s_words[random.Next(s_words.Length)]}, {s_words[random.Next(s_words.Length)]}\""
                : s_words[random.Next(s_words.Length)])},{random.Next(1, 1000)},{random.Next(1, 100_000)}"));

    /// <summary>Lines of about that many bytes, of numbers with a blank between each two.</summary>
    internal static TextFile MakeNumbers<TParser>(TemporaryFolder folder, long length, int lineLength)
        where TParser : struct, ILineParser
        => Make<TParser>(folder.PathOf(string.Create(CultureInfo.InvariantCulture, $"numbers-{lineLength}.txt")), length, (random, _) =>
        {
            StringBuilder line = new();
            for (int wanted = random.Next(lineLength / 2, lineLength * 3 / 2); line.Length < wanted;)
            {
                line.Append(line.Length == 0 ? string.Empty : " ").Append(random.Next(100_000));
            }

            return line.ToString();
        });

    internal long Check(long answer) => answer == Answer ? answer : throw new InvalidDataException($"{answer} instead of {Answer}.");
    public void Dispose() => File.Delete(Path);

    // The first rows are made and parsed one by one, as strings; the file repeats them, so that making it takes no time worth mentioning.
    private static TextFile Make<TParser>(string path, long length, Func<Random, int, string> line)
        where TParser : struct, ILineParser
    {
        const int Rows = 20_000;
        Random random = new(Seed: 20190);
        TParser parser = default;
        StringBuilder text = new();
        for (int row = 0; row < Rows; row++)
        {
            string one = line(random, row);
            parser.Take(one);
            text.Append(one).Append('\n');
        }

        byte[] block = Encoding.ASCII.GetBytes(text.ToString());
        long blocks = Math.Max(1, length / block.Length);
        using FileStream stream = new(path, FileMode.Create, FileAccess.Write, FileShare.None, bufferSize: 0);
        for (long i = 0; i < blocks; i++)
        {
            stream.Write(block);
        }

        return new TextFile(path, blocks * block.Length, blocks * parser.Finish());
    }
}
