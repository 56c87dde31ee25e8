using System.Buffers;
using System.IO.Pipelines;
using System.Text;
using FilePipelinesBenchmarks.Files;
using FilePipelinesBenchmarks.Measuring;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Parsing;

/// <summary>Every way to get at the lines of a file; the first is the baseline.</summary>
internal static partial class ParseWays
{
    private const int LargeBuffer = 64 * 1024;
    private const int ReadAhead = 1024 * 1024;

    internal static ParseWay StreamReader { get; } = new StreamReaderParse();

    internal static ParseWay FileStreamLoop { get; } = new FileStreamLoopParse();

    internal static ParseWay PipeReaderCreate { get; } = new PipeReaderParse(
        "PipeReader.Create", static path => PipeReader.Create(Open(path)));

    internal static ParseWay PipeReaderCreateLarge { get; } = new PipeReaderParse(
        "PipeReader.Create, 64 KiB", static path => PipeReader.Create(Open(path), new StreamPipeReaderOptions(bufferSize: LargeBuffer)));

    internal static ParseWay FilePipeReader { get; } = new PipeReaderParse(
        "FilePipeReader", static path => global::Pipelines.File.FilePipeReader.Create(path));

    internal static ParseWay FilePipeReaderAhead { get; } = new PipeReaderParse(
        "FilePipeReader, read-ahead",
        static path =>
            global::Pipelines.File.FilePipeReader.Create(path, new FilePipeReaderOptions { PauseReadAheadThreshold = ReadAhead }));

    internal static ParseWay ReadLineSequencesAsync { get; } = new ReadLinesParse();

    internal static ParseWay ReadLineBatchesAsync { get; } = new ReadLineBatchesParse();

    internal static ParseWay InMemory { get; } = new InMemoryParse();

    internal static IReadOnlyList<ParseWay> All { get; } = MakeAll();

    /// <summary>All of them over one file.</summary>
    internal static IReadOnlyList<Candidate> Candidates<TParser>(TextFile file)
        where TParser : struct, ILineParser
        => [.. All.Select(way => new Candidate(way.Name, () => way.ParseAsync<TParser>(file)))];

    private static List<ParseWay> MakeAll()
    {
        List<ParseWay> ways =
        [
            StreamReader, FileStreamLoop, PipeReaderCreate, PipeReaderCreateLarge, FilePipeReader, FilePipeReaderAhead,
            ReadLineSequencesAsync,
            ReadLineBatchesAsync, InMemory,
        ];
        AddPeers(ways);
        return ways;
    }

    static partial void AddPeers(List<ParseWay> ways);

    private static FileStream Open(string path)
        => new(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, FileOptions.SequentialScan);

    /// <summary>What a program without pipelines does: a string a line.</summary>
    private sealed class StreamReaderParse() : ParseWay("StreamReader.ReadLineAsync")
    {
        internal override async ValueTask<long> ParseAsync<TParser>(TextFile file)
        {
            TParser parser = default;
            using StreamReader reader = new(Open(file.Path), Encoding.UTF8, detectEncodingFromByteOrderMarks: false, LargeBuffer);
            while (await reader.ReadLineAsync() is { } line)
            {
                parser.Take(line);
            }

            return file.Check(parser.Finish());
        }
    }

    /// <summary>What one writes by hand: one array, FileStream.Read behind what is left over, IndexOf.</summary>
    private sealed class FileStreamLoopParse() : ParseWay("by hand: FileStream.Read, 64 KiB, IndexOf")
    {
        internal override ValueTask<long> ParseAsync<TParser>(TextFile file)
        {
            TParser parser = default;
            using FileStream stream = Open(file.Path);
            byte[] buffer = ArrayPool<byte>.Shared.Rent(LargeBuffer);
            int filled = 0;
            int read;
            while ((read = stream.Read(buffer, filled, buffer.Length - filled)) > 0)
            {
                filled += read;
                int start = 0;
                int length;
                while ((length = buffer.AsSpan(start, filled - start).IndexOf((byte)'\n')) >= 0)
                {
                    parser.Take(buffer.AsSpan(start, length));
                    start += length + 1;
                }

                // The lines of these files are shorter than the buffer.
                buffer.AsSpan(start, filled - start).CopyTo(buffer);
                filled -= start;
            }

            ArrayPool<byte>.Shared.Return(buffer);
            return new ValueTask<long>(file.Check(parser.Finish()));
        }
    }

    private sealed class PipeReaderParse(string name, Func<string, PipeReader> create) : ParseWay(name)
    {
        internal override ValueTask<long> ParseAsync<TParser>(TextFile file) => LineSplitter.ParseAsync<TParser>(create(file.Path), file);
    }

    /// <summary>The lines one by one, as this library gives them, in place of a loop of one's own.</summary>
    private sealed class ReadLinesParse() : ParseWay("FilePipeReader.ReadLineSequencesAsync")
    {
        internal override async ValueTask<long> ParseAsync<TParser>(TextFile file)
        {
            TParser parser = default;
            byte[] scratch = [];
            await foreach (ReadOnlySequence<byte> line in global::Pipelines.File.FilePipeReader.Create(file.Path).ReadLineSequencesAsync())
            {
                if (line.IsSingleSegment)
                {
                    parser.Take(line.FirstSpan);
                }
                else
                {
                    scratch = scratch.Length < line.Length ? new byte[line.Length] : scratch;
                    line.CopyTo(scratch);
                    parser.Take(scratch.AsSpan(0, (int)line.Length));
                }
            }

            return file.Check(parser.Finish());
        }
    }

    /// <summary>As many whole lines at once as one read has brought.</summary>
    private sealed class ReadLineBatchesParse() : ParseWay("FilePipeReader.ReadLineBatchesAsync")
    {
        internal override async ValueTask<long> ParseAsync<TParser>(TextFile file)
        {
            TParser parser = default;
            await foreach (LineBatch batch in global::Pipelines.File.FilePipeReader.Create(file.Path).ReadLineBatchesAsync())
            {
                foreach (ReadOnlySpan<byte> line in batch)
                {
                    parser.Take(line);
                }
            }

            return file.Check(parser.Finish());
        }
    }

    /// <summary>The limit: the same parser, with nothing to read.</summary>
    private sealed class InMemoryParse() : ParseWay("already in memory")
    {
        internal override ValueTask<long> ParseAsync<TParser>(TextFile file)
        {
            TParser parser = default;
            ReadOnlySequence<byte> rest = new(file.Content);
            LineSplitter.TakeLines(ref rest, ref parser);
            return new ValueTask<long>(file.Check(parser.Finish()));
        }
    }
}
