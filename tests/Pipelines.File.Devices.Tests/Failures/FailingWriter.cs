namespace FileDevicesTests;

/// <summary>
/// A writer on a disk that begins to fail: it goes on until the first error, and then tries everything that must fail from there on.
/// </summary>
internal sealed class FailingWriter(string folder, string name, FilePipeWriterOptions options, Acknowledge acknowledge)
{
    private const int Length = 4 << 20;
    private const int MaxRecord = 20_000;

    private static readonly byte[] s_content = Pattern.Bytes(Length);

    private readonly string _path = Path.Combine(folder, name);

    internal string Name => name;

    /// <summary>What was thrown first; <see langword="null"/>: nothing, it came to its end.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>Every wrong answer after the error.</summary>
    internal List<string> Wrongs { get; } = [];

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
                s_content.AsSpan(written, length).CopyTo(writer.GetSpan(length));
                writer.Advance(length);
                written += length;
                FlushGuarantee guarantee = random.Next(3) == 0 ? FlushGuarantee.Durable : FlushGuarantee.Written;
                await writer.FlushAsync(guarantee);
                if (guarantee == FlushGuarantee.Durable)
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

    /// <summary>Compares what the recovered file system has with what was acknowledged.</summary>
    internal void Check(string recovered, long promised)
    {
        string path = Path.Combine(recovered, name);
        byte[] content = File.Exists(path) ? File.ReadAllBytes(path) : [];
        int same = content.AsSpan(0, (int)Math.Min(content.Length, promised)).CommonPrefixLength(s_content);
        if (same < promised)
        {
            throw new LostPromiseException(
                $"{name}: {promised} bytes were on the device, and {same} are right of {content.Length}. "
                    + $"It threw {Error?.Message ?? "nothing"}.");
        }
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
