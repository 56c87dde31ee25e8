namespace FilePipelines.Devices.Tests;

/// <summary>
/// A writer on a disk that begins to fail: it goes on until the first error, and then tries everything that must fail from there on.
/// </summary>
internal sealed class FailingWriter(string folder, string name, FilePipeWriterOptions options, Acknowledge acknowledge)
{
    internal const int Length = 4 << 20;
    private const int MaxRecord = 20_000;

    private readonly string _path = Path.Combine(folder, name);

    /// <summary>What every file holds in the end.</summary>
    internal static byte[] Content { get; } = Pattern.Bytes(Length);

    internal string Name => name;

    /// <summary>What was thrown first; <see langword="null"/>: nothing, it came to its end.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>Every wrong answer after the error.</summary>
    internal List<string> Wrongs { get; } = [];

    /// <summary>Writes until it is whole, or until a call fails.</summary>
    internal async Task RunAsync(Random random)
    {
        FilePipeWriter writer;
        try
        {
            writer = await FilePipeWriter.OpenAsync(_path, options);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            OnError(e, "OpenAsync");
            return;
        }

        try
        {
            for (int written = 0; written < Length;)
            {
                int length = Math.Min(random.Next(1, MaxRecord), Length - written);
                Content.AsSpan(written, length).CopyTo(writer.GetSpan(length));
                writer.Advance(length);
                written += length;
                bool isDurable = random.Next(3) == 0 || written == Length;
                await writer.FlushAsync(isDurable ? FlushGuarantee.Durable : FlushGuarantee.Written);

                // Before it is completed, a file that replaces another one has no name.
                if (isDurable && !options.Replace)
                {
                    acknowledge(name, written);
                }
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            OnError(e, "FlushAsync");
            await FailsAsync("Written", async () => await writer.FlushAsync(FlushGuarantee.Written));
            await FailsAsync("Durable", async () => await writer.FlushAsync(FlushGuarantee.Durable));
            await FailsAsync("WriteAsync", async () => await writer.WriteAsync(new byte[100]));
            await FailsAsync("CompleteAsync", async () => await writer.CompleteAsync());
            return;
        }

        try
        {
            await writer.CompleteAsync();
            acknowledge(name, Length);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            OnError(e, "CompleteAsync");
        }
    }

    /// <summary>What the recovered file system lacks of what was acknowledged; <see langword="null"/>: nothing.</summary>
    internal string? LossIn(string recovered, long promised)
        => LossOf(Path.Combine(recovered, name), promised) is { } loss
            ? $"{name}: {loss} It threw {Error?.Message ?? "nothing"}." : null;

    /// <summary>How many of the promised bytes are not there; <see langword="null"/>: all are.</summary>
    private static string? LossOf(string path, long promised)
    {
        byte[] content = File.Exists(path) ? File.ReadAllBytes(path) : [];
        int same = content.AsSpan(0, (int)Math.Min(content.Length, promised)).CommonPrefixLength(Content);
        return same < promised ? $"{promised} bytes were on the device, and {same} are right of {content.Length}." : null;
    }

    private async Task FailsAsync(string what, Func<Task> call)
    {
        Exception? thrown = await Record.ExceptionAsync(call);
        if (thrown is IOException or UnauthorizedAccessException)
        {
            OnError(thrown, what);
        }
        else
        {
            Wrongs.Add($"{name}: {what} after {Error!.Message}: {thrown?.GetType().Name ?? "succeeded"}");
        }
    }

    private void OnError(Exception e, string what)
    {
        Error ??= e;
        // What the folder's sync answers is about the folder.
        if (!e.Message.Contains(folder, StringComparison.Ordinal))
        {
            Wrongs.Add($"{name}: {what} does not name the path: {e.Message}");
        }
    }
}
