using System.Buffers;

namespace FilePipelines.Devices.Child;

/// <summary>Files that are replaced: old or new, never half, and never what was given up.</summary>
internal sealed class CrashReplaces(string folder, ExpectedState state) : ICrashFeature
{
    private const int Files = 4;

    private readonly VersionedFiles _files = new(Path.Combine(folder, "replaced"), "replace", Files, state, VersionOf);

    public Task CheckAsync()
    {
        _files.Check();
        return Task.CompletedTask;
    }

    public Task RunAsync(Random random)
        => Task.WhenAny(Enumerable.Range(0, 2).Select(_ => new Random(random.Next())).Select((mine, half) => Task.Run(async () =>
        {
            while (true)
            {
                // One task a file, as the order of two replacements at once is nobody's promise.
                int file = (mine.Next(Files / 2) * 2) + half;
                string subject = _files.SubjectOf(file);
                (int version, byte[] content) = _files.Begin(file);
                FilePipeWriter writer = FilePipeWriter.Create(
                    _files.PathOf(file),
                    new() { Replace = true, FlushGuarantee = mine.Next(3) == 0 ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind });
                writer.Write(content.AsSpan(0, content.Length / 2));
                await writer.FlushAsync();
                writer.Write(content.AsSpan(content.Length / 2));
                switch (mine.Next(8))
                {
                    case 0:
                        writer.Abort();
                        await writer.CompleteAsync();
                        state.Drop(subject, version);
                        break;
                    case 1:
                        await writer.DisposeAsync();
                        state.Drop(subject, version);
                        break;
                    default:
                        await writer.CompleteAsync();
                        state.Done(subject, version);
                        break;
                }
            }
        }))).Unwrap();

    private static byte[] VersionOf(int file, int version)
        => VersionedFiles.Make(version, (int)(((version * 7919L) + file) % 100_000), (version * 31L) + file);
}
