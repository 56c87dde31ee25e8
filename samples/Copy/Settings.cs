using System.Globalization;
using Pipelines.File;

namespace CopySample;

/// <summary>What the command line asks for.</summary>
/// <param name="Source">A file, a folder, or - for standard input.</param>
/// <param name="Destination">The same, or - for standard output.</param>
/// <param name="Hash">Whether the SHA-256 of every file is printed.</param>
/// <param name="Durable">Whether every file is on the device when it has its name.</param>
/// <param name="DropBehind">Whether neither the files nor their copies stay in the page cache.</param>
/// <param name="Jobs">How many files of a folder are copied at once.</param>
internal sealed record Settings(
    string Source, string Destination, bool Hash = false, bool Durable = false, bool DropBehind = false, int Jobs = 2)
{
    internal const string Usage = """
        usage: Copy [--sha256] [--durable] [--drop-behind] [--jobs N] SOURCE DESTINATION

        Copies a file, or a folder with all that is in it. A file may be - for standard input or output.

          --sha256       print the SHA-256 of every file that is copied, as sha256sum(1) reads it
          --durable      every file is on the device before it appears under its name
          --drop-behind  neither a file nor its copy stays in the page cache, which is left to other programs: for backups
          --jobs N       how many files of a folder are copied at once (2)

        A file appears under its name when it is whole, with the source's mode and time of last change. Interrupted, the same command
        goes on: a file of a folder that has the source's length and time is not copied again.
        """;

    /// <summary>For both sides of a copy.</summary>
    internal FileCaching Caching => DropBehind ? FileCaching.DropBehind : FileCaching.Keep;

    internal static Settings? Parse(string[] arguments, out string? error)
    {
        List<string> names = [];
        Settings settings = new(string.Empty, string.Empty);
        error = null;
        for (int i = 0; i < arguments.Length && error is null; i++)
        {
            switch (arguments[i])
            {
                case "--sha256":
                    settings = settings with { Hash = true };
                    break;
                case "--durable":
                    settings = settings with { Durable = true };
                    break;
                case "--drop-behind":
                    settings = settings with { DropBehind = true };
                    break;
                case "--jobs" when i + 1 < arguments.Length
                    && int.TryParse(arguments[i + 1], NumberStyles.None, CultureInfo.InvariantCulture, out int jobs) && jobs > 0:
                    settings = settings with { Jobs = jobs };
                    i++;
                    break;
                case { Length: > 1 } option when option[0] == '-':
                    error = $"'{option}' is no argument of it, or lacks its value; --help tells them.";
                    break;
                case string name:
                    names.Add(name);
                    break;
            }
        }

        if (error is null && names.Count != 2)
        {
            error = "it takes a source and a destination; --help tells more.";
        }

        return error is null ? settings with { Source = names[0], Destination = names[1] } : null;
    }
}
