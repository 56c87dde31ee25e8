using System.Diagnostics;
using System.IO.Pipelines;
using Pipelines.File;
using Spectre.Console;

// dotnet run -c Release --project samples/Copy -- SOURCE DESTINATION    either may be - for standard input or output
if (args.Length != 2)
{
    bool isHelp = args is ["-h" or "--help"];
    (isHelp ? Console.Out : Console.Error).WriteLine("usage: Copy SOURCE DESTINATION    copies a file; either may be - for standard input or output; a DESTINATION that is there is overwritten");
    return isHelp ? 0 : 2;
}

using CancellationTokenSource interrupted = new();
Console.CancelKeyPress += (_, e) =>
{
    e.Cancel = true;
    interrupted.Cancel();
};

(string source, string destination) = (args[0], args[1]);
FilePipeReader? reader = null;
FilePipeWriter? writer = null;
try
{
    // Before the destination is opened, which empties it.
    if (source != "-" && destination != "-" && Path.GetFullPath(source) == Path.GetFullPath(destination))
    {
        throw new IOException($"'{source}' and '{destination}' are the same file.");
    }

    reader = source == "-" ? FilePipeReader.OpenStandardInput() : FilePipeReader.Create(source);
    long length = reader.Length ?? 0;
    writer = destination == "-" ? FilePipeWriter.OpenStandardOutput() : FilePipeWriter.Create(destination, new FilePipeWriterOptions { PreallocationSize = length });
    long start = Stopwatch.GetTimestamp();
    await CopyWithProgressAsync(reader, writer, length, interrupted.Token);
    await writer.CompleteAsync();
    if (destination != "-")
    {
        double seconds = Stopwatch.GetElapsedTime(start).TotalSeconds;
        long bytes = writer.Position;
        Console.WriteLine($"{bytes:N0} bytes in {seconds:0.00} s, {bytes / seconds / 1e6:N0} MB/s");
    }

    return 0;
}
catch (Exception e) when (e is OperationCanceledException or IOException or UnauthorizedAccessException or ArgumentException or NotSupportedException)
{
    Console.Error.WriteLine(e is OperationCanceledException ? "Copy: interrupted" : $"Copy: {e.Message}");
    if (writer is not null)
    {
        await AbandonAsync(writer, e);
        Console.Error.WriteLine(destination != "-"
            ? $"Copy: '{destination}' is not whole: it holds the first {writer.Position:N0} bytes."
            : "Copy: what came out is not whole.");
    }

    return e is OperationCanceledException ? 130 : 2;
}
finally
{
    if (reader is not null)
    {
        await reader.CompleteAsync();
    }
}

static async Task CopyWithProgressAsync(FilePipeReader reader, FilePipeWriter writer, long length, CancellationToken cancellationToken)
{
    if (Console.IsOutputRedirected || length == 0)
    {
        await reader.CopyToAsync(writer, cancellationToken);
        return;
    }

    await AnsiConsole.Progress()
        .Columns(new TaskDescriptionColumn(), new ProgressBarColumn(), new PercentageColumn(), new TransferSpeedColumn())
        .StartAsync(async context =>
        {
            ProgressTask progress = context.AddTask("Copying", maxValue: length);
            Task copy = reader.CopyToAsync(writer, cancellationToken);
            while (await Task.WhenAny(copy, Task.Delay(100, CancellationToken.None)) != copy)
            {
                progress.Value = reader.Position;
            }

            await copy;
            progress.Value = length;
        });
}

// What was flushed is written, the rest is dropped, and the file is closed; that it failed is known already.
static async Task AbandonAsync(PipeWriter writer, Exception reason)
{
    try
    {
        await writer.CompleteAsync(reason);
    }
    catch (Exception e) when (e is IOException or UnauthorizedAccessException)
    {
    }
}
