using System.IO.MemoryMappedFiles;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Parsing;

/// <summary>The ways to all lines of a large file, on one processor and on two; the first, a loop by hand, is the baseline.</summary>
internal static class LineWays
{
    private const int BufferSize = 64 * 1024;
    private const int Threads = 2;

    internal static IReadOnlyList<ParseWay> All { get; } =
    [
        new FileStreamByHand(), ParseWays.ReadLineBatchesAsync, ParseWays.ReadLineSequencesAsync, new Text(), ParseWays.StreamReader,
        new FileReadLines(), new Partitions(), new Mapping(), new ParallelReadLines(),
    ];

    /// <summary>Those that give bytes, on one processor.</summary>
    internal static IReadOnlyList<ParseWay> Bytes { get; } = [All[0], ParseWays.ReadLineBatchesAsync, ParseWays.ReadLineSequencesAsync];

    /// <summary>Those that give strings, on one processor; the first is the baseline.</summary>
    internal static IReadOnlyList<ParseWay> Strings { get; } = [ParseWays.StreamReader, new FileReadLines(), new Text()];

    /// <summary>All of them over one file.</summary>
    internal static IReadOnlyList<Candidate> Candidates<TParser>(TextFile file)
        where TParser : struct, ILineParser
        => [.. All.Select(way => new Candidate(way.Name, () => way.ParseAsync<TParser>(file)))];

    private sealed class FileStreamByHand() : ParseWay("FileStream, 64 KiB, by hand")
    {
        internal override ValueTask<long> ParseAsync<TParser>(TextFile file)
        {
            TParser parser = default;
            byte[] buffer = new byte[BufferSize];
            using FileStream stream = new(
                file.Path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, FileOptions.SequentialScan);
            int left = 0;
            for (int read; (read = stream.Read(buffer.AsSpan(left))) > 0;)
            {
                ReadOnlySpan<byte> rest = TakeLines(buffer.AsSpan(0, left + read), ref parser);
                rest.CopyTo(buffer);
                left = rest.Length;
            }

            return new ValueTask<long>(file.Check(parser.Finish()));
        }
    }

    private sealed class Text() : ParseWay("ReadLinesAsync")
    {
        internal override async ValueTask<long> ParseAsync<TParser>(TextFile file)
        {
            TParser parser = default;
            await foreach (string line in FilePipeReader.Create(file.Path).ReadLinesAsync())
            {
                parser.Take(line);
            }

            return file.Check(parser.Finish());
        }
    }

    private sealed class FileReadLines() : ParseWay("File.ReadLines")
    {
        internal override ValueTask<long> ParseAsync<TParser>(TextFile file)
        {
            TParser parser = default;
            foreach (string line in File.ReadLines(file.Path))
            {
                parser.Take(line);
            }

            return new ValueTask<long>(file.Check(parser.Finish()));
        }
    }

    private sealed class Partitions() : ParseWay("ForEachPartitionAsync, 2, batches")
    {
        internal override async ValueTask<long> ParseAsync<TParser>(TextFile file)
        {
            long answer = 0;
            await FilePipeReader.ForEachPartitionAsync(
                file.Path,
                async (reader, cancellationToken) =>
                {
                    TParser parser = default;
                    await foreach (LineBatch batch in reader.ReadLineBatchesAsync(cancellationToken: cancellationToken))
                    {
                        foreach (ReadOnlySpan<byte> line in batch)
                        {
                            parser.Take(line);
                        }
                    }

                    Interlocked.Add(ref answer, parser.Finish());
                },
                Threads);
            return file.Check(answer);
        }
    }

    private sealed class Mapping() : ParseWay("memory mapping, 2 threads")
    {
        internal override ValueTask<long> ParseAsync<TParser>(TextFile file)
        {
            long answer = 0;
            using MemoryMappedFile mapping = MemoryMappedFile.CreateFromFile(
                file.Path, FileMode.Open, null, 0, MemoryMappedFileAccess.Read);
            using MemoryMappedViewAccessor view = mapping.CreateViewAccessor(0, 0, MemoryMappedFileAccess.Read);
            Parallel.ForEach(
                FilePartitions.AtLineEnds(file.Path, Threads), range => Interlocked.Add(ref answer, ParseRange<TParser>(view, range)));
            return new ValueTask<long>(file.Check(answer));
        }

        private static unsafe long ParseRange<TParser>(MemoryMappedViewAccessor view, FileRange range)
            where TParser : struct, ILineParser
        {
            TParser parser = default;
            byte* first = null;
            view.SafeMemoryMappedViewHandle.AcquirePointer(ref first);
            try
            {
                TakeLines(new ReadOnlySpan<byte>(first + range.Offset, checked((int)range.Length)), ref parser);
                return parser.Finish();
            }
            finally
            {
                view.SafeMemoryMappedViewHandle.ReleasePointer();
            }
        }
    }

    private sealed class ParallelReadLines() : ParseWay("Parallel.ForEach, File.ReadLines, 2")
    {
        internal override ValueTask<long> ParseAsync<TParser>(TextFile file)
        {
            long answer = 0;
            Parallel.ForEach(
                File.ReadLines(file.Path),
                new ParallelOptions { MaxDegreeOfParallelism = Threads },
                static () => default(TParser),
                static (line, _, parser) =>
                {
                    parser.Take(line);
                    return parser;
                },
                parser => Interlocked.Add(ref answer, parser.Finish()));
            return new ValueTask<long>(file.Check(answer));
        }
    }

    /// <summary>Gives every whole line to the parser, and returns what follows the last of them.</summary>
    private static ReadOnlySpan<byte> TakeLines<TParser>(ReadOnlySpan<byte> rest, ref TParser parser)
        where TParser : struct, ILineParser
    {
        for (int index; (index = rest.IndexOf((byte)'\n')) >= 0; rest = rest[(index + 1)..])
        {
            ReadOnlySpan<byte> line = rest[..index];
            parser.Take(line is [.., (byte)'\r'] ? line[..^1] : line);
        }

        return rest;
    }
}
