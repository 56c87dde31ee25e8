using System.Globalization;

namespace TailSample;

/// <summary>What the command line asks for.</summary>
/// <param name="Names">Files and patterns, as given.</param>
/// <param name="Lines">How many lines of a file that is there at the start; <see langword="null"/>: all of them.</param>
/// <param name="Checkpoint">Where to keep how far each file was read.</param>
/// <param name="HasPrefix">Whether each line begins with the name of its file.</param>
internal sealed record Settings(IReadOnlyList<string> Names, long? Lines = 10, string? Checkpoint = null, bool HasPrefix = true)
{
    internal const string Usage = """
        usage: Tail [-n LINES|all] [--checkpoint FILE] [--no-prefix] FILE|PATTERN...

          -n LINES           begin that many lines before the end (10); all: at the beginning
          --checkpoint FILE  keep in FILE how far each file was read, and go on there; a file that it does not know is read from its beginning
          --no-prefix        lines without the name of their file

        A pattern has * or ? in its last part, in quotes: 'logs/*.log'. Files may come later, and be rotated. Ctrl-C ends it.
        """;

    internal static bool IsPattern(string name) => Path.GetFileName(name.AsSpan()).ContainsAny('*', '?');

    /// <summary>How the name of a log is shown: as it was given, or in the folder that was given with a pattern.</summary>
    internal string NameOf(string path)
        => Names.FirstOrDefault(name => Path.GetFullPath(name) == path)
            ?? Path.Combine(
                Path.GetDirectoryName(Names.First(name => IsPattern(name)
                    && Path.GetDirectoryName(Path.GetFullPath(name)) == Path.GetDirectoryName(path))) ?? "",
                Path.GetFileName(path));

    internal static Settings? Parse(string[] arguments, out string? error)
    {
        List<string> names = [];
        Settings settings = new(names);
        bool hasLines = false;
        error = null;
        for (int i = 0; i < arguments.Length && error is null; i++)
        {
            string argument = arguments[i];
            string? value = argument is "-n" or "--checkpoint" && i + 1 < arguments.Length ? arguments[++i] : null;
            switch (argument)
            {
                case "--no-prefix":
                    settings = settings with { HasPrefix = false };
                    break;
                case "-n" when value == "all" || long.TryParse(value, NumberStyles.None, CultureInfo.InvariantCulture, out _):
                    settings = settings with { Lines = value == "all" ? null : long.Parse(value!, CultureInfo.InvariantCulture) };
                    hasLines = true;
                    break;
                case "--checkpoint" when !string.IsNullOrEmpty(value):
                    settings = settings with { Checkpoint = Path.GetFullPath(value) };
                    break;
                case "-n" or "--checkpoint":
                    error = value is null
                        ? $"{argument} needs a value; --help tells more."
                        : $"'{value}' is no value for {argument}; --help tells more.";
                    break;
                case ['-', _, ..]:
                    error = $"'{argument}' is no argument of it; --help tells them.";
                    break;
                case var name when name.Length == 0 || Path.GetDirectoryName(argument.AsSpan()).ContainsAny('*', '?'):
                    error = $"'{argument}': a pattern has * and ? in its last part only.";
                    break;
                default:
                    names.Add(argument);
                    break;
            }
        }

        error ??= names.Count == 0 ? "which file? --help tells more." : null;
        return error is not null ? null : settings.Checkpoint is not null && !hasLines ? settings with { Lines = null } : settings;
    }
}
