namespace FilePipelines.Repository.Tests;

/// <summary>A block of C# in a page of the documentation, and what the comment in front of it says of it (CONTRIBUTING.md).</summary>
internal sealed partial class Example
{
    private readonly string _page;
    private readonly int _line;
    private readonly string _code;

    private Example(string page, int line, string code, string? comment)
    {
        _page = page;
        _line = line;
        _code = code;
        Prints = comment?.StartsWith("prints ", StringComparison.Ordinal) == true ? comment["prints ".Length..] : null;
        IsServer = comment == "serves";
        IsElsewhere = comment?.StartsWith(".ci/run ", StringComparison.Ordinal) == true;
        IsRun = comment != "compile" && !IsServer && !IsElsewhere;
        if (comment is not (null or "compile" or "serves") && Prints is null && !IsElsewhere)
        {
            throw new FormatException($"{page}({line}): nobody knows '{comment}'.");
        }
    }

    /// <summary>The page and the line where the code begins.</summary>
    public string Name => $"{_page}:{_line}";

    /// <summary>What its output contains, or <see langword="null"/>.</summary>
    public string? Prints { get; }

    /// <summary>Whether it is to be run, and to end by itself.</summary>
    public bool IsRun { get; }

    public bool IsServer { get; }

    /// <summary>Whether it needs a server that is not ours: .ci/recipes compiles and runs it.</summary>
    public bool IsElsewhere { get; }

    /// <summary>Lines of its code, those that are blank included.</summary>
    public int Lines => _code.TrimEnd('\n').Split('\n').Length;

    /// <summary>A name that C# takes.</summary>
    public string Namespace => "Example_" + NoLetter().Replace(Name, "_");

    public bool IsProgram
        => !_code.Contains("\nnamespace ", StringComparison.Ordinal) && !_code.StartsWith("namespace ", StringComparison.Ordinal);

    /// <summary>Every block of a page, in order.</summary>
    public static IEnumerable<Example> AllOf(string page, string text)
    {
        foreach (Match match in Block().Matches(text))
        {
            Group code = match.Groups["code"];
            int line = text.AsSpan(0, code.Index).Count('\n') + 1;
            yield return new Example(page, line, code.Value, match.Groups["comment"].Success ? match.Groups["comment"].Value : null);
        }
    }

    /// <summary>
    /// The block as a file of a program that has several: its statements, unchanged, in a method that gets the arguments, its types behind
    /// them, in a namespace of its own. Errors of the compiler name the page and the line.
    /// </summary>
    public string ToSource()
    {
        if (!IsProgram)
        {
            return $"#line {_line} \"{_page}\"\n{_code}";
        }

        StringBuilder usings = new();
        StringBuilder statements = new();
        StringBuilder types = new();
        int line = _line;
        foreach (string one in _code.TrimEnd('\n').Split('\n'))
        {
            StringBuilder part = types.Length > 0 || TypeBegins().IsMatch(one) ? types
                : UsingDirective().IsMatch(one) ? usings : statements;
            part.Append(CultureInfo.InvariantCulture, $"#line {line++} \"{_page}\"\n{one}\n");
        }

        return $$"""
            {{usings}}
            #line default
            #pragma warning disable CS1998 // Not every example waits for something.
            namespace {{Namespace}}
            {
                internal static class Program
                {
                    internal static async Task RunAsync(string[] args)
                    {
            {{statements}}
            #line default
                    }
                }
            {{types}}
            #line default
            }
            """;
    }

    [GeneratedRegex(@"(^<!-- example: (?<comment>.+) -->\n)?^```csharp\n(?<code>(.*\n)*?)^```$", RegexOptions.Multiline)]
    private static partial Regex Block();

    [GeneratedRegex(@"^using (static )?[\w.]+( = [\w.<>]+)?;$")]
    private static partial Regex UsingDirective();

    [GeneratedRegex(@"^(\[\w|((public|internal|file|sealed|abstract|static|partial|readonly) )*(class|record|struct|enum|interface) )")]
    private static partial Regex TypeBegins();

    [GeneratedRegex(@"\W")]
    private static partial Regex NoLetter();
}
