using System.IO.Compression;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Parsing;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Writing;

/// <summary>A GZipStream over each stream that a file may be written through; the first is the baseline.</summary>
internal static class CompressWays
{
    private const int Piece = 64 * 1024;

    internal static IReadOnlyList<Candidate> Candidates(TemporaryFolder folder, long length)
    {
        byte[] content = TextFile.MakeNumbers<LineParser>(folder, length, lineLength: 100).Content.ToArray();
        string path = folder.PathOf("numbers.gz");
        return
        [
            new("FileStream, gzip", () => CompressAsync(content, path, new FileStream(path, FileMode.CreateNew)), Delete),
            new("FilePipeWriter.AsStream, gzip", () => CompressAsync(
                content, path, FilePipeWriter.Create(path, new() { Mode = FileMode.CreateNew }).AsStream()), Delete),
        ];

        void Delete() => File.Delete(path);
    }

    private static async ValueTask<long> CompressAsync(byte[] content, string path, Stream stream)
    {
        await using (GZipStream compressing = new(stream, CompressionLevel.Fastest))
        {
            for (int offset = 0; offset < content.Length; offset += Piece)
            {
                await compressing.WriteAsync(content.AsMemory(offset, Math.Min(Piece, content.Length - offset)));
            }
        }

        return new FileInfo(path).Length;
    }
}
