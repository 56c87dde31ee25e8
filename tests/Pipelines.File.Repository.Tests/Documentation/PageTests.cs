namespace FilePipelines.Repository.Tests;

/// <summary>
/// Every page of the repository: what its links lead to is there, and its C# is compiled by <see cref="DocumentationTests"/>. Guides are
/// short.
/// </summary>
public sealed partial class PageTests
{
    private const int MostWords = 1500;

    private static readonly string? s_root = FindRoot();

    public static TheoryData<string> Pages => s_root is null ? [] : [.. PagesBelow(s_root).Order(StringComparer.Ordinal)];

    public static TheoryData<string> Guides => s_root is null ? [] : [.. PagesBelow(s_root).Where(static page => page == "README.md"
        || (Path.GetDirectoryName(page) == "docs" && Path.GetFileName(page) != "options.md")).Order(StringComparer.Ordinal)];

    [Theory(SkipTestWithoutData = true)]
    [MemberData(nameof(Pages))]
    public void Links_OfThePage_LeadSomewhere(string page)
    {
        List<string> broken = [];
        foreach (Match match in Link().Matches(WithoutCode(page)))
        {
            string link = match.Groups["to"].Value;
            if (link.StartsWith("https://", StringComparison.Ordinal))
            {
                continue;
            }

            string[] parts = link.Split('#');
            string target = parts[0].Length == 0 ? page
                : Path.GetRelativePath(s_root!, Path.GetFullPath(Path.Combine(s_root!, Path.GetDirectoryName(page)!, parts[0])));
            if (!Path.Exists(Path.Combine(s_root!, target)) || (parts.Length > 1
                && !Heading().Matches(WithoutCode(target)).Any(heading => AnchorOf(heading.Groups["text"].Value) == parts[1])))
            {
                broken.Add(link);
            }
        }

        Assert.Empty(broken);
    }

    [Theory(SkipTestWithoutData = true)]
    [MemberData(nameof(Pages))]
    public void CSharp_OfThePage_IsCompiled(string page)
    {
        int blocks = BeginOfCSharp().Count(File.ReadAllText(Path.Combine(s_root!, page)));
        Assert.Equal(blocks,
            ExampleProgram.Examples.Keys.Count(name => name.StartsWith(page.Replace('\\', '/') + ":", StringComparison.Ordinal)));
    }

    /// <summary>A guide is read in one go. README.md counts without the table that the report writes; options.md is looked up.</summary>
    [Theory(SkipTestWithoutData = true)]
    [MemberData(nameof(Guides))]
    public void Words_OfAGuide_AreNotTooMany(string page)
    {
        string text = SpeedTable().Replace(File.ReadAllText(Path.Combine(s_root!, page)), "");
        Assert.InRange(text.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries).Length, 1, MostWords);
    }

    /// <summary>Where the tests run from a folder of their own, there is no repository around them.</summary>
    internal static string? FindRoot()
    {
        DirectoryInfo? folder = new(AppContext.BaseDirectory);
        while (folder is not null && !File.Exists(Path.Combine(folder.FullName, "Pipelines.File.slnx")))
        {
            folder = folder.Parent;
        }

        return folder?.FullName;
    }

    private static IEnumerable<string> PagesBelow(string folder)
        => Directory.EnumerateFiles(folder, "*.md").Select(path => Path.GetRelativePath(s_root!, path))
            .Concat(Directory.EnumerateDirectories(folder).Where(below => Path.GetFileName(below)
                is not (".git" or "bin" or "obj" or "artifacts" or "BenchmarkDotNet.Artifacts" or "report-quick")).SelectMany(PagesBelow));

    private static string WithoutCode(string page)
        => Code().Replace(File.ReadAllText(Path.Combine(s_root!, page)).ReplaceLineEndings("\n"), "");

    // As GitHub makes it: lower case, letters, digits, hyphens and underscores, a hyphen for each space.
    private static string AnchorOf(string heading)
    {
        StringBuilder anchor = new();
        foreach (char one in Link().Replace(heading, "]").Trim())
        {
            if (char.IsLetterOrDigit(one) || one is ' ' or '-' or '_')
            {
                anchor.Append(one == ' ' ? '-' : char.ToLowerInvariant(one));
            }
        }

        return anchor.ToString();
    }

    [GeneratedRegex("<!-- speed: .*<!-- end of speed -->", RegexOptions.Singleline)]
    private static partial Regex SpeedTable();

    [GeneratedRegex(@"\]\((?<to>[^)\s]+)\)")]
    private static partial Regex Link();

    [GeneratedRegex(@"^#+ (?<text>.*)$", RegexOptions.Multiline)]
    private static partial Regex Heading();

    // Blocks only: code within a line has nothing that looks like a link.
    [GeneratedRegex(@"^```.*?^```$", RegexOptions.Multiline | RegexOptions.Singleline)]
    private static partial Regex Code();

    [GeneratedRegex(@"^\s*(```|~~~)\s*(csharp|cs|c#)\b", RegexOptions.Multiline | RegexOptions.IgnoreCase)]
    private static partial Regex BeginOfCSharp();
}
