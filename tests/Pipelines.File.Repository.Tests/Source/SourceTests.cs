namespace FilePipelines.Repository.Tests;

/// <summary>Every C# file of the repository.</summary>
public sealed class SourceTests
{
    private const int MostColumns = 140;

    [Fact]
    public void Lines_OfEverySourceFile_AreOf140ColumnsAtMost()
        => Assert.Equal("", string.Join(", ", SourceFiles().SelectMany(file => LongLinesOf(file).Select(number => $"{file}:{number}"))));

    // The build checks what else belongs to the formatting.
    [Fact]
    public void Usings_OfEverySourceFile_AreSortedWithThoseOfTheSystemFirst()
        => Assert.Equal("", string.Join(", ", SourceFiles().Where(file => !UsingsOf(file).SequenceEqual(UsingsOf(file)
            .OrderBy(name => name != "System" && !name.StartsWith("System.", StringComparison.Ordinal))
            .ThenBy(name => name.Replace('.', '\0'), StringComparer.OrdinalIgnoreCase)))));

    private static string[] SourceFiles()
    {
        string? root = PageTests.FindRoot();
        Assert.SkipWhen(root is null, "There is no repository around the tests.");
        string[] files =
        [
            .. ((string[])["src", "tests", "benchmarks", "samples", "tools"])
                .SelectMany(folder => FilesBelow(Path.Combine(root, folder))).Order(StringComparer.Ordinal),
        ];
        Assert.Contains(Path.Combine(root, "src", "Pipelines.File", "FilePipeReader.cs"), files);
        return files;
    }

    private static IEnumerable<string> FilesBelow(string folder)
        => Directory.EnumerateFiles(folder, "*.cs").Concat(Directory.EnumerateDirectories(folder)
            .Where(below => Path.GetFileName(below) is not ("bin" or "obj" or "artifacts" or "BenchmarkDotNet.Artifacts"))
            .SelectMany(FilesBelow));

    // A raw string literal has the lines that its text has.
    private static IEnumerable<int> LongLinesOf(string file)
    {
        const string Quotes = "\"\"\"";
        bool isInText = false;
        int number = 0;
        foreach (string line in File.ReadLines(file))
        {
            number++;
            if (line.Length > MostColumns && (!isInText || line.TrimStart().StartsWith(Quotes, StringComparison.Ordinal)))
            {
                yield return number;
            }

            isInText ^= line.Split(Quotes).Length % 2 == 0;
        }
    }
    private static IEnumerable<string> UsingsOf(string file)
        => File.ReadLines(file).TakeWhile(line => line.Length == 0 || line.StartsWith("using ", StringComparison.Ordinal))
            .Where(line => line.EndsWith(';') && !line.Contains('=') && !line.Contains(" static ", StringComparison.Ordinal))
            .Select(line => line["using ".Length..^1]);
}
