using System.IO.Enumeration;

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

    // The files that match are one log (LogFollowerOptions.InNameOrder). Null: it is a pattern of rotated names.
    private readonly string? _expression;

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

    /// <summary>All files of a log in the order of their names.</summary>
    /// <param name="path">The full path, the last part of which is a pattern.</param>
    internal RotatedName(string path)
    {
        (Folder, _expression) = (Path.GetDirectoryName(path)!, Path.GetFileName(path));
        Prefix = OperatingSystem.IsWindows() ? "" : _expression[.._expression.AsSpan().IndexOfAny('*', '?')];
    }

    /// <summary>Whether the files that match are one log, in the order of their names.</summary>
    internal bool IsInNameOrder => _expression is not null;

    /// <summary>The full path of the folder that the names are in.</summary>
    internal string Folder { get; }

    /// <summary>What every name that matches begins with.</summary>
    internal string Prefix { get; }

    /// <summary>Whether a name is one that the log gets when it is rotated.</summary>
    /// <param name="name">The name to match.</param>
    /// <param name="number">What stands for <c>#</c>, if that is in the pattern: digits, with -, _ or . between them.</param>
    internal bool IsMatch(ReadOnlySpan<char> name, out ReadOnlySpan<char> number)
    {
        number = _expression is null ? default : name;
        if (_expression is not null)
        {
            return FileSystemName.MatchesSimpleExpression(_expression, name, ignoreCase: OperatingSystem.IsWindows());
        }

        if (name.Length < Prefix.Length + _suffix.Length || !name.StartsWith(Prefix) || !name.EndsWith(_suffix))
        {
            return false;
        }

        ReadOnlySpan<char> between = name[Prefix.Length..^_suffix.Length];
        number = _placeholder == '#' ? between : default;
        return _placeholder == '*' || (_placeholder == '#' ? IsNumber(between) : between.IsEmpty);
    }

    /// <summary>
    /// Compares names, first without their extensions: digits as numbers, and a shorter name before one that goes on (app.log, app_2.log,
    /// app_10.log). What begins with a digit is no extension (app.1).
    /// </summary>
    internal static int Compare(string one, string other)
    {
        (int end, int otherEnd) = (StemOf(one), StemOf(other));
        int result = CompareText(one.AsSpan(0, end), other.AsSpan(0, otherEnd));
        result = result != 0 ? result : CompareText(one.AsSpan(end), other.AsSpan(otherEnd));
        return result != 0 ? result : string.CompareOrdinal(one, other);

        static int StemOf(string name)
            => name.Length - (Path.GetExtension(name.AsSpan()) is [_, not (>= '0' and <= '9'), ..] extension ? extension.Length : 0);
    }

    private static int CompareText(ReadOnlySpan<char> left, ReadOnlySpan<char> right)
    {
        while (!left.IsEmpty && !right.IsEmpty)
        {
            (int digits, int others, int result) = (DigitsOf(left), DigitsOf(right), left[0] - right[0]);
            if (digits > 0 && others > 0)
            {
                ReadOnlySpan<char> number = left[..digits].TrimStart('0');
                ReadOnlySpan<char> another = right[..others].TrimStart('0');
                result = number.Length != another.Length ? number.Length - another.Length : number.SequenceCompareTo(another);
            }

            if (result != 0)
            {
                return result;
            }

            left = left[Math.Max(digits, 1)..];
            right = right[Math.Max(others, 1)..];
        }

        return left.Length - right.Length;

        static int DigitsOf(ReadOnlySpan<char> text)
            => text.IndexOfAnyExceptInRange('0', '9') is var end && end < 0 ? text.Length : end;
    }

    private static bool IsNumber(ReadOnlySpan<char> text)
        => !text.IsEmpty && char.IsAsciiDigit(text[0]) && char.IsAsciiDigit(text[^1]) && !text.ContainsAnyExcept(s_number);

    private static string Literal(string pattern, string log)
        => pattern.Replace("{stem}", Path.GetFileNameWithoutExtension(log), StringComparison.Ordinal)
            .Replace("{extension}", Path.GetExtension(log), StringComparison.Ordinal)
            .Replace("{name}", log, StringComparison.Ordinal);
}
