using System.Text.RegularExpressions;

namespace Pipelines.File.Follow;

/// <summary>A pattern of <see cref="LogFollowerOptions.RotatedNames"/>.</summary>
internal static partial class RotatedName
{
    /// <summary>Numbers and dates: digits, and what may stand between them.</summary>
    private const string Number = "[0-9](?:[-_.0-9]*[0-9])?";

    /// <summary>Makes the expression that matches the names of the rotated files.</summary>
    /// <param name="pattern">The pattern, without its folder.</param>
    /// <param name="logName">The name of the log, without its folder.</param>
    internal static Regex ToRegex(string pattern, string logName)
    {
        string expression = Part().Replace(pattern, part => part.Value switch
        {
            "{name}" => Regex.Escape(logName),
            "{stem}" => Regex.Escape(Path.GetFileNameWithoutExtension(logName)),
            "{extension}" => Regex.Escape(Path.GetExtension(logName)),
            "*" => ".*",
            "?" => ".",
            "#" => Number,
            string text => Regex.Escape(text),
        });
        return new Regex($@"\A{expression}\z", RegexOptions.CultureInvariant | RegexOptions.Singleline);
    }

    [GeneratedRegex(@"\{name}|\{stem}|\{extension}|.", RegexOptions.Singleline)]
    private static partial Regex Part();
}
