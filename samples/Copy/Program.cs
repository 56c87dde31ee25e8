using System.Diagnostics;
using CopySample;
using Pipelines.File;
using Spectre.Console;

// dotnet run -c Release --project samples/Copy -- SOURCE DESTINATION    a file, a folder, or - for standard input or output
if (args is ["-h" or "--help"])
{
    Console.WriteLine(Settings.Usage);
    return 0;
}

if (Settings.Parse(args, out string? mistake) is not { } settings)
{
    Console.Error.WriteLine($"Copy: {mistake}");
    return 2;
}

using CancellationTokenSource interrupted = new();
Console.CancelKeyPress += (_, e) =>
{
    e.Cancel = true;
    interrupted.Cancel();
};

Totals totals = new();
try
{
    long start = Stopwatch.GetTimestamp();
    ThrowIfSame(settings.Source, settings.Destination);
    if (settings.Source == "-" || settings.Destination == "-")
    {
        await CopyStandardAsync();
    }
    else if (Directory.Exists(settings.Source))
    {
        TreeCopier tree = new(settings, totals);
        await ShowAsync(0, tree.CopyAsync(static message => Console.Error.WriteLine($"Copy: {message}"), interrupted.Token));
        foreach ((string name, string hash) in tree.Hashes)
        {
            Console.WriteLine($"{hash}  {name}");
        }
    }
    else
    {
        FileInfo source = new(settings.Source);
        string name = Directory.Exists(settings.Destination) ? Path.Join(settings.Destination, source.Name) : settings.Destination;
        ThrowIfSame(settings.Source, name);
        Task<string?> copy = new FileCopier(settings, totals).CopyAsync(source, name, interrupted.Token);
        await ShowAsync(source.Exists ? source.Length : 0, copy);
        if (await copy is { } hash)
        {
            Console.WriteLine($"{hash}  {name}");
        }
    }

    if (settings.Destination != "-" && !settings.Hash)
    {
        double seconds = Stopwatch.GetElapsedTime(start).TotalSeconds;
        string unchanged = totals.Unchanged > 0 ? $", {totals.Unchanged:N0} unchanged" : string.Empty;
        Console.WriteLine(
            $"{totals.Bytes:N0} bytes in {totals.Files:N0} files{unchanged}, {seconds:0.00} s, {totals.Bytes / seconds / 1e6:N0} MB/s");
    }

    return totals.Failed > 0 ? 1 : 0;
}
catch (Exception e)
    when (e is OperationCanceledException or IOException or UnauthorizedAccessException or ArgumentException or NotSupportedException)
{
    Console.Error.WriteLine(
        e is OperationCanceledException ? $"Copy: interrupted, {totals.Files:N0} files are whole" : $"Copy: {e.Message}");
    return e is OperationCanceledException ? 130 : 2;
}

async Task CopyStandardAsync()
{
    FilePipeReaderOptions reading = new() { Caching = settings.Caching };
    await using FilePipeReader reader = settings.Source == "-"
        ? FilePipeReader.OpenStandardInput(reading)
        : FilePipeReader.Create(settings.Source, reading);
    FilePipeWriter writer = settings.Destination == "-"
        ? FilePipeWriter.OpenStandardOutput(new FilePipeWriterOptions { Caching = settings.Caching })
        : FilePipeWriter.Create(settings.Destination, new FilePipeWriterOptions { Replace = true, Caching = settings.Caching });
    await using (writer)
    {
        string? hash = await new FileCopier(settings, totals).CopyAsync(reader, writer, interrupted.Token);
        await writer.CompleteAsync();
        totals.AddFile();
        if (hash is not null)
        {
            Console.Error.WriteLine($"{hash}  {settings.Source}");
        }
    }
}

// Where somebody looks at it; length 0: nobody knows how much it is.
async Task ShowAsync(long length, Task copy)
{
    if (Console.IsOutputRedirected)
    {
        await copy;
        return;
    }

    await AnsiConsole.Progress()
        .Columns(new TaskDescriptionColumn(), new ProgressBarColumn(), new PercentageColumn(), new TransferSpeedColumn())
        .StartAsync(async context =>
        {
            ProgressTask progress = context.AddTask("Copying", maxValue: Math.Max(1, length)).IsIndeterminate(length == 0);
            while (await Task.WhenAny(copy, Task.Delay(100, CancellationToken.None)) != copy)
            {
                progress.Value = totals.Bytes;
                progress.Description = length > 0 ? "Copying" : $"{totals.Files:N0} files";
            }

            await copy;
        });
}

static void ThrowIfSame(string source, string destination)
{
    if (source == "-" || destination == "-")
    {
        return;
    }

    string from = Path.TrimEndingDirectorySeparator(Path.GetFullPath(source));
    string to = Path.TrimEndingDirectorySeparator(Path.GetFullPath(destination));
    if (from == to)
    {
        throw new IOException($"'{source}' and '{destination}' are the same file.");
    }

    if (to.StartsWith(from + Path.DirectorySeparatorChar, StringComparison.Ordinal))
    {
        throw new IOException($"'{destination}' is inside '{source}'.");
    }
}
