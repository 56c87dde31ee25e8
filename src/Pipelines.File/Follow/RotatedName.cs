namespace Pipelines.File.Follow;

/// <summary>Matches names with a pattern of <see cref="LogFollowerOptions.RotatedNames"/>, without its folder.</summary>
internal static class RotatedName
{
    private static readonly SearchValues<char> s_number = SearchValues.Create("0123456789-_.");
    private static readonly string[] s_placeholders = ["{name}", "{stem}", "{extension}"];

    /// <summary>Whether a name is one that the log gets when it is rotated.</summary>
    /// <param name="pattern">The pattern.</param>
    /// <param name="log">The name of the log.</param>
    /// <param name="name">The name to match.</param>
    /// <param name="number">What stands for the first <c>#</c>, if there is one: digits, with -, _ or . between them.</param>
    internal static bool IsMatch(ReadOnlySpan<char> pattern, ReadOnlySpan<char> log, ReadOnlySpan<char> name, out ReadOnlySpan<char> number)
    {
        number = default;
        if (pattern.IsEmpty)
        {
            return name.IsEmpty;
        }

        if (pattern[0] is '*' or '#')
        {
            bool isNumber = pattern[0] == '#';
            for (int length = name.Length; length >= 0; length--)
            {
                if ((!isNumber || IsNumber(name[..length])) && IsMatch(pattern[1..], log, name[length..], out ReadOnlySpan<char> later))
                {
                    number = isNumber ? name[..length] : later;
                    return true;
                }
            }

            return false;
        }

        ReadOnlySpan<char> literal = pattern[0] == '?' ? name[..Math.Min(1, name.Length)] : Literal(pattern, log);
        return (pattern[0] != '?' || !name.IsEmpty) && name.StartsWith(literal)
            && IsMatch(pattern[LengthOfFirst(pattern)..], log, name[literal.Length..], out number);
    }

    /// <summary>What every name that matches begins with.</summary>
    internal static string Prefix(ReadOnlySpan<char> pattern, ReadOnlySpan<char> log)
    {
        string prefix = "";
        for (; !pattern.IsEmpty && pattern[0] is not ('*' or '#' or '?'); pattern = pattern[LengthOfFirst(pattern)..])
        {
            prefix = string.Concat(prefix, Literal(pattern, log));
        }

        return prefix;
    }

    private static ReadOnlySpan<char> Literal(ReadOnlySpan<char> pattern, ReadOnlySpan<char> log)
        => LengthOfFirst(pattern) == 1 ? pattern[..1]
            : pattern[1] == 'n' ? log
            : pattern[1] == 's' ? Path.GetFileNameWithoutExtension(log)
            : Path.GetExtension(log);

    private static int LengthOfFirst(ReadOnlySpan<char> pattern)
    {
        foreach (string placeholder in s_placeholders)
        {
            if (pattern.StartsWith(placeholder))
            {
                return placeholder.Length;
            }
        }

        return 1;
    }

    private static bool IsNumber(ReadOnlySpan<char> text)
        => !text.IsEmpty && char.IsAsciiDigit(text[0]) && char.IsAsciiDigit(text[^1]) && !text.ContainsAnyExcept(s_number);
}
