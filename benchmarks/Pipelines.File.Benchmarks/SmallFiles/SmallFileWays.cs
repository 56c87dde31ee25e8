using System.Buffers;
using System.IO.Pipelines;
using FilePipelinesBenchmarks.Files;
using Pipelines.File;

namespace FilePipelinesBenchmarks.SmallFiles;

/// <summary>Every way to read a small file; the first is the baseline.</summary>
internal static class SmallFileWays
{
    internal static SmallFileWay ReadAllBytesAsync { get; } = new ReadAllBytesAsyncWay();

    internal static SmallFileWay ReadAllBytes { get; } = new ReadAllBytesWay();

    internal static SmallFileWay FileStreamAsync { get; } = new FileStreamAsyncWay();

    internal static SmallFileWay PipeReaderCreate { get; } = new PipeReaderWay("PipeReader.Create",
        static path => PipeReader.Create(new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0)));

    internal static SmallFileWay FilePipeReader { get; } = new PipeReaderWay(
        "FilePipeReader", static path => global::Pipelines.File.FilePipeReader.Create(path));

    internal static IReadOnlyList<SmallFileWay> All { get; } =
    [
        ReadAllBytesAsync, ReadAllBytes, FileStreamAsync, PipeReaderCreate, FilePipeReader,
    ];

    private static long Look(ReadOnlySpan<byte> file) => SmallFileSet.Look(file.Length, file[^1]);

    private sealed class ReadAllBytesAsyncWay() : SmallFileWay("File.ReadAllBytesAsync")
    {
        protected override async ValueTask<long> ReadAsync(string path) => Look(await File.ReadAllBytesAsync(path));
    }

    private sealed class ReadAllBytesWay() : SmallFileWay("File.ReadAllBytes")
    {
        protected override ValueTask<long> ReadAsync(string path) => new(Look(File.ReadAllBytes(path)));
    }

    private sealed class FileStreamAsyncWay() : SmallFileWay("FileStreamAsync, rented buffer")
    {
        protected override async ValueTask<long> ReadAsync(string path)
        {
            using FileStream stream = new(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0);
            byte[] buffer = ArrayPool<byte>.Shared.Rent((int)stream.Length);
            int length = await stream.ReadAtLeastAsync(buffer, (int)stream.Length);
            long answer = Look(buffer.AsSpan(0, length));
            ArrayPool<byte>.Shared.Return(buffer);
            return answer;
        }
    }

    private sealed class PipeReaderWay(string name, Func<string, PipeReader> create) : SmallFileWay(name)
    {
        protected override async ValueTask<long> ReadAsync(string path)
        {
            PipeReader reader = create(path);
            ReadResult result;
            while (true)
            {
                // Examined and not consumed, so that all of it is there at the end, as it is for the other ways.
                result = await reader.ReadAsync();
                if (result.IsCompleted)
                {
                    break;
                }

                reader.AdvanceTo(result.Buffer.Start, result.Buffer.End);
            }

            ReadOnlySequence<byte> buffer = result.Buffer;
            long answer = buffer.IsSingleSegment
                ? Look(buffer.FirstSpan)
                : SmallFileSet.Look(buffer.Length, buffer.Slice(buffer.Length - 1).FirstSpan[0]);
            reader.AdvanceTo(buffer.End);
            await reader.CompleteAsync();
            return answer;
        }
    }
}
