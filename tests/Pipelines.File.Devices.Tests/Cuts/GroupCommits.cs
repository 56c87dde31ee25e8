namespace FilePipelines.Devices.Tests;

/// <summary>Several producers commit records of the pattern to one file: one sync serves all that wait.</summary>
internal sealed class GroupCommits(FlushGuarantee guarantee, long preallocated) : Workload
{
    internal const int Length = 600_000;

    private const int Producers = 6;
    private const int MaxRecord = 3000;

    private static readonly byte[] s_content = Pattern.Bytes(Length);

    internal override async Task RunAsync(string folder, Acknowledge acknowledge, Random random)
    {
        FilePipeWriter writer = FilePipeWriter.Create(
            Path.Combine(folder, "log"), new() { FlushGuarantee = guarantee, PreallocationSize = preallocated });
        Lock turn = new();
        int written = 0;
        long promised = 0;
        await Task.WhenAll(Enumerable.Range(0, Producers).Select(_ => Task.Run(async () =>
        {
            while (true)
            {
                long end;
                ValueTask<System.IO.Pipelines.FlushResult> flush;
                lock (turn)
                {
                    int length = Math.Min(random.Next(1, MaxRecord), Length - written);
                    if (length == 0)
                    {
                        return;
                    }

                    s_content.AsSpan(written, length).CopyTo(writer.GetSpan(length));
                    writer.Advance(length);
                    end = written += length;
                    flush = writer.FlushAsync();
                }

                await flush;
                lock (turn)
                {
                    promised = Math.Max(promised, end);
                    acknowledge("log", promised);
                }
            }
        })));
        await writer.CompleteAsync();
        acknowledge("log", Length);
    }

    internal override Task CheckAsync(string folder, IReadOnlyDictionary<string, long> promises)
    {
        int promised = (int)promises.GetValueOrDefault("log");
        byte[] content = Read(Path.Combine(folder, "log"));
        Demand(content.Length >= promised, $"{promised} bytes were committed, and the file has {content.Length}.");
        int same = content.AsSpan(0, promised).CommonPrefixLength(s_content);
        Demand(same == promised, $"{promised} bytes were committed, and only {same} are right.");
        return Task.CompletedTask;
    }
}
