namespace FilePipelines.Devices.Tests;

/// <summary>
/// Large files whose pages are dropped, one in small writes and one in large ones, with a commit now and then.
/// </summary>
internal sealed class DroppedBehind(FlushGuarantee guarantee) : Workload
{
    // Pages are dropped in steps of 8 MiB: some steps of small writes.
    private const int Length = 18 << 20;
    private const int SmallWrite = 32 * 1024;
    private const int LargeWrite = 128 * 1024;
    private const int LargeLength = 3 << 20;

    private static readonly byte[] s_content = Pattern.Bytes(Length);

    internal override async Task RunAsync(string folder, Acknowledge acknowledge, Random random)
    {
        await WriteAsync(folder, "large", LargeLength, LargeWrite, acknowledge, random);
        await WriteAsync(folder, "small", Length, SmallWrite, acknowledge, random);
    }

    internal override Task CheckAsync(string folder, IReadOnlyDictionary<string, long> promises)
    {
        foreach ((string name, long promised) in promises)
        {
            byte[] content = Read(Path.Combine(folder, name));
            Demand(content.Length >= promised, $"{promised} bytes of {name} were committed, and the file has {content.Length}.");
            int same = content.AsSpan(0, (int)promised).CommonPrefixLength(s_content);
            Demand(same == promised, $"{promised} bytes of {name} were committed, and only {same} are right.");
        }

        return Task.CompletedTask;
    }

    private async Task WriteAsync(string folder, string name, int length, int step, Acknowledge acknowledge, Random random)
    {
        FilePipeWriter writer = FilePipeWriter.Create(
            Path.Combine(folder, name), new() { FlushGuarantee = guarantee, Caching = FileCaching.DropBehind });
        for (int written = 0; written < length; written += step)
        {
            s_content.AsSpan(written, step).CopyTo(writer.GetSpan(step));
            writer.Advance(step);
            bool commits = random.Next(16) == 0;
            await writer.FlushAsync(commits ? guarantee : FlushGuarantee.Written);
            if (commits)
            {
                acknowledge(name, written + step);
            }
        }

        await writer.CompleteAsync();
        acknowledge(name, length);
    }
}
