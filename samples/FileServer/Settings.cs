using System.Globalization;

namespace FileServerSample;

/// <summary>What the command line asks for.</summary>
/// <param name="Root">The folder that is served, absolute.</param>
/// <param name="Port">The port on 127.0.0.1; 0 takes a free one.</param>
/// <param name="MaxUpload">The most bytes of one upload.</param>
/// <param name="Overwrite">Whether an upload may replace a file.</param>
/// <param name="Durable">Whether an upload is on the device before it is acknowledged.</param>
/// <param name="DropBehind">Whether an upload leaves the page cache to the files that are served.</param>
internal sealed record Settings(
    string Root, int Port = 5080, long MaxUpload = 1L << 30, bool Overwrite = false, bool Durable = false, bool DropBehind = false)
{
    internal const string Usage = """
        usage: FileServer --root FOLDER [--port N] [--max-upload SIZE] [--overwrite] [--durable] [--drop-behind]

          --root FOLDER       what is served, browsed and uploaded to
          --port N            on 127.0.0.1 (5080; 0 takes a free one)
          --max-upload SIZE   bytes, or with K, M or G: 500M (1G)
          --overwrite         uploads may replace files
          --durable           an upload is on the device before it is acknowledged
          --drop-behind       an upload does not stay in the page cache, which is left to what is served
        """;

    internal static Settings? Parse(string[] arguments, out string? error)
    {
        Settings settings = new("");
        for (int i = 0; i < arguments.Length; i++)
        {
            string name = arguments[i];
            switch (name)
            {
                case "--overwrite":
                    settings = settings with { Overwrite = true };
                    continue;
                case "--durable":
                    settings = settings with { Durable = true };
                    continue;
                case "--drop-behind":
                    settings = settings with { DropBehind = true };
                    continue;
                case not ("--root" or "--port" or "--max-upload"):
                    error = $"'{name}' is no argument of it; --help tells them.";
                    return null;
            }

            if (++i == arguments.Length)
            {
                error = $"{name} needs a value; --help tells more.";
                return null;
            }

            string value = arguments[i];
            switch (name)
            {
                case "--root" when Directory.Exists(value):
                    settings = settings with { Root = Path.TrimEndingDirectorySeparator(Path.GetFullPath(value)) };
                    continue;
                case "--port" when int.TryParse(value, NumberStyles.None, CultureInfo.InvariantCulture, out int port)
                    && port <= ushort.MaxValue:
                    settings = settings with { Port = port };
                    continue;
                case "--max-upload" when ParseSize(value) is long size:
                    settings = settings with { MaxUpload = size };
                    continue;
            }

            error = name switch
            {
                "--root" => $"There is no folder '{value}'.",
                "--port" => $"'{value}' is no port: 0 to 65535.",
                _ => $"'{value}' is no size: bytes, or a number with K, M or G.",
            };
            return null;
        }

        error = settings.Root.Length == 0 ? "--root FOLDER is needed; --help tells more." : null;
        return error is null ? settings : null;
    }

    private static long? ParseSize(string value)
    {
        int shift = value.Length == 0 ? 0 : value[^1] switch { 'K' => 10, 'M' => 20, 'G' => 30, _ => 0 };
        string digits = shift == 0 ? value : value[..^1];
        return long.TryParse(digits, NumberStyles.None, CultureInfo.InvariantCulture, out long number) && number <= long.MaxValue >> shift
            ? number << shift : null;
    }
}
