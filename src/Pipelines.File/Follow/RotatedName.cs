using System.Buffers;

namespace Pipelines.File.Follow;

/// <summary>A pattern of <see cref="LogFollowerOptions.RotatedNames"/>.</summary>
internal static class RotatedName
{
    private const string Name = "{name}";
    private const string Stem = "{stem}";
    private const string Extension = "{extension}";

    private static readonly SearchValues<char> s_numberCharacters = SearchValues.Create("0123456789-_.");

    /// <summary>Whether the pattern, without its folder, means a file of that name.</summary>
    /// <param name="pattern">The pattern.</param>
    /// <param name="logName">The name of the log, without its folder.</param>
    /// <param name="candidate">The name that is asked for, without its folder.</param>
    internal static bool Matches(ReadOnlySpan<char> pattern, ReadOnlySpan<char> logName, ReadOnlySpan<char> candidate)
    {
        while (!pattern.IsEmpty)
        {
            if (TryReplace(pattern, logName, out ReadOnlySpan<char> text, out int length))
            {
                if (!candidate.StartsWith(text, StringComparison.Ordinal))
                {
                    return false;
                }

                pattern = pattern[length..];
                candidate = candidate[text.Length..];
                continue;
            }

            switch (pattern[0])
            {
                case '*' or '#':
                    return MatchesSomewhere(pattern, logName, candidate);
                case var wanted when candidate.IsEmpty || (wanted != '?' && wanted != candidate[0]):
                    return false;
            }

            pattern = pattern[1..];
            candidate = candidate[1..];
        }

        return candidate.IsEmpty;
    }

    /// <summary>The pattern begins with what may be of any length.</summary>
    private static bool MatchesSomewhere(ReadOnlySpan<char> pattern, ReadOnlySpan<char> logName, ReadOnlySpan<char> candidate)
    {
        bool isNumber = pattern[0] == '#';
        for (int length = 0; length <= candidate.Length; length++)
        {
            ReadOnlySpan<char> text = candidate[..length];
            if ((!isNumber || IsNumber(text)) && Matches(pattern[1..], logName, candidate[length..]))
            {
                return true;
            }
        }

        return false;
    }

    private static bool IsNumber(ReadOnlySpan<char> text)
        => !text.IsEmpty && char.IsAsciiDigit(text[0]) && char.IsAsciiDigit(text[^1]) && !text.ContainsAnyExcept(s_numberCharacters);

    private static bool TryReplace(ReadOnlySpan<char> pattern, ReadOnlySpan<char> logName, out ReadOnlySpan<char> text, out int length)
    {
        length = pattern.StartsWith(Name) ? Name.Length : pattern.StartsWith(Stem) ? Stem.Length : pattern.StartsWith(Extension) ? Extension.Length : 0;
        text = length == Extension.Length ? Path.GetExtension(logName) : pattern.StartsWith(Stem) ? Path.GetFileNameWithoutExtension(logName) : logName;
        return length > 0;
    }
}
