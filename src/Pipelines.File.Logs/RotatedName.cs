namespace Pipelines.File;

/// <summary>
/// The names that one log gets when it is rotated, by one pattern of <see cref="LogFollowerOptions.RotatedNames"/>.
/// </summary>
internal sealed class RotatedName
{
    private static readonly SearchValues<char> s_number = SearchValues.Create("0123456789-_.");

    // The pattern's # or *; NUL: it has none, and the prefix is the only name.
    private readonly char _placeholder;
    private readonly string _suffix = "";

    /// <param name="pattern">The pattern.</param>
    /// <param name="path">The full path of the log.</param>
    internal RotatedName(string pattern, string path)
    {
        Folder = Path.GetFullPath(Path.Combine(Path.GetDirectoryName(path) ?? path, Path.GetDirectoryName(pattern) ?? pattern));
        (string name, string log) = (Path.GetFileName(pattern), Path.GetFileName(path));
        int index = name.AsSpan().IndexOfAny('#', '*');
        Prefix = Literal(index < 0 ? name : name[..index], log);
        if (index >= 0)
        {
            (_placeholder, _suffix) = (name[index], Literal(name[(index + 1)..], log));
        }
    }

    /// <summary>The full path of the folder that the names are in.</summary>
    internal string Folder { get; }

    /// <summary>What every name that matches begins with.</summary>
    internal string Prefix { get; }

    /// <summary>Whether a name is one that the log gets when it is rotated.</summary>
    /// <param name="name">The name to match.</param>
    /// <param name="number">What stands for <c>#</c>, if that is in the pattern: digits, with -, _ or . between them.</param>
    internal bool IsMatch(ReadOnlySpan<char> name, out ReadOnlySpan<char> number)
    {
        number = default;
        if (name.Length < Prefix.Length + _suffix.Length || !name.StartsWith(Prefix) || !name.EndsWith(_suffix))
        {
            return false;
        }

        ReadOnlySpan<char> between = name[Prefix.Length..^_suffix.Length];
        number = _placeholder == '#' ? between : default;
        return _placeholder == '*' || (_placeholder == '#' ? IsNumber(between) : between.IsEmpty);
    }

    private static bool IsNumber(ReadOnlySpan<char> text)
        => !text.IsEmpty && char.IsAsciiDigit(text[0]) && char.IsAsciiDigit(text[^1]) && !text.ContainsAnyExcept(s_number);

    private static string Literal(string pattern, string log)
        => pattern.Replace("{stem}", Path.GetFileNameWithoutExtension(log), StringComparison.Ordinal)
            .Replace("{extension}", Path.GetExtension(log), StringComparison.Ordinal)
            .Replace("{name}", log, StringComparison.Ordinal);
}
