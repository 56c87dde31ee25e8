using System.Buffers;

namespace FilePipelines.Benchmarks;

/// <summary>Every way to replace a file of 4 KiB; the first is the baseline.</summary>
internal static class Replacing
{
    private const int Length = 4096;
    private static readonly byte[] s_content = new byte[Length];

    internal static Grid Grid(Scale scale) => new(
        "replace", "Replacing a file of 4 KiB", "guarantee", 8, new PairedMeasurement(scale.MinRounds, 41, scale.Sample),
        "**Replacing**: `File.Move` keeps no mode and syncs no name; `CompleteAsync` calls on another thread.",
        folder =>
        [
            new Column("no sync", Of(folder.PathOf("written"), isDurable: false)),
            new Column("durable", Of(folder.PathOf("durable"), isDurable: true)),
        ]);

    private static IReadOnlyList<Candidate> Of(string path, bool isDurable)
    {
        FilePipeWriterOptions options =
            new() { Replace = true, FlushGuarantee = isDurable ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind };
        File.WriteAllBytes(path, s_content);
        return
        [
            new Candidate("File.WriteAllBytes, File.Move", () =>
            {
                string temporary = path + ".new";
                File.WriteAllBytes(temporary, s_content);
                if (isDurable)
                {
                    using SafeFileHandle handle = File.OpenHandle(temporary, FileMode.Open, FileAccess.ReadWrite);
                    RandomAccess.FlushToDisk(handle);
                }

                File.Move(temporary, path, overwrite: true);
                return new ValueTask<long>(Length);
            }),
            new Candidate("FilePipeWriter, Complete", () =>
            {
                FilePipeWriter writer = FilePipeWriter.Create(path, options);
                writer.Write(s_content);
                writer.Complete();
                return new ValueTask<long>(Length);
            }),
            new Candidate("FilePipeWriter, CompleteAsync", async () =>
            {
                FilePipeWriter writer = FilePipeWriter.Create(path, options);
                writer.Write(s_content);
                await writer.CompleteAsync();
                return Length;
            }),
        ];
    }
}
