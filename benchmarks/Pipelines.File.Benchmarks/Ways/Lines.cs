using System.Buffers;
using System.Text;
using Nerdbank.Streams;
using Pipelines.Sockets.Unofficial;

namespace FilePipelines.Benchmarks;

/// <summary>Every way to get at the lines of a file, for one parser. Every line of these files ends with a line feed.</summary>
internal static class LineWays<TParser>
    where TParser : struct, ILineParser
{
    private const int BufferSize = 256 * 1024;
    private const int SmallBuffer = 64 * 1024;
    private const int MaxLineLength = 4096;
    private const int Threads = 2;

    /// <summary>What a program without pipelines does: a string a line.</summary>
    internal static Way<TextFile> StreamReader { get; } = new("StreamReader.ReadLineAsync", static async file =>
    {
        TParser parser = default;
        using StreamReader reader = new(Open(file), Encoding.UTF8, detectEncodingFromByteOrderMarks: false, BufferSize);
        while (await reader.ReadLineAsync() is { } line)
        {
            parser.Take(line);
        }

        return file.Check(parser.Finish());
    });

    internal static Way<TextFile> StreamReaderSync { get; } = new("StreamReader.ReadLine", static file =>
    {
        TParser parser = default;
        using StreamReader reader = new(Open(file), Encoding.UTF8, detectEncodingFromByteOrderMarks: false, BufferSize);
        while (reader.ReadLine() is { } line)
        {
            parser.Take(line);
        }

        return new(file.Check(parser.Finish()));
    });

    internal static Way<TextFile> ByHand { get; } = ByHandWith(BufferSize);
    internal static Way<TextFile> ByHandSmall { get; } = ByHandWith(SmallBuffer);

    private static Way<TextFile> ByHandWith(int size) => new($"by hand: FileStream, {SizeText.Of(size)}", file =>
    {
        TParser parser = default;
        _ = ReadLoop.Run(file.Path, size, bytes => TakeLines(bytes, ref parser));
        return new(file.Check(parser.Finish()));
    });

    internal static Way<TextFile> FileReadLines { get; } = new("File.ReadLines", static file =>
    {
        TParser parser = default;
        foreach (string line in File.ReadLines(file.Path))
        {
            parser.Take(line);
        }

        return new(file.Check(parser.Finish()));
    });

    /// <summary>The lines one by one, as this library gives them, in place of a loop of one's own.</summary>
    internal static Way<TextFile> Sequences { get; } = new("FilePipeReader.ReadLineSequencesAsync", static async file =>
    {
        TParser parser = default;
        byte[] scratch = [];
        await foreach (ReadOnlySequence<byte> line in FilePipeReader.Create(file.Path).ReadLineSequencesAsync())
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
    });

    /// <summary>As many whole lines at once as one read has brought.</summary>
    internal static Way<TextFile> Batches { get; } = new(
        "FilePipeReader.ReadLineBatchesAsync",
        static async file => file.Check(await BatchesAsync(FilePipeReader.Create(file.Path), default)));

    /// <summary>The same on two processors.</summary>
    internal static Way<TextFile> Partitions { get; } = new("ForEachPartitionAsync, 2, batches", static async file =>
    {
        long answer = 0;
        await FilePipeReader.ForEachPartitionAsync(
            file.Path,
            async (reader, cancellationToken) => Interlocked.Add(ref answer, await BatchesAsync(reader, cancellationToken)),
            Threads);
        return file.Check(answer);
    });

    internal static Way<TextFile> Text { get; } = new("ReadLinesAsync", static async file =>
    {
        TParser parser = default;
        await foreach (string line in FilePipeReader.Create(file.Path).ReadLinesAsync())
        {
            parser.Take(line);
        }

        return file.Check(parser.Finish());
    });

    /// <summary>The limit: the same parser, with nothing to read.</summary>
    internal static Way<TextFile> InMemory { get; } = new("already in memory", static file =>
    {
        TParser parser = default;
        TakeLines(file.Content.Span, ref parser);
        return new(file.Check(parser.Finish()));
    });

    /// <summary>One parser over every way to get at the lines, on one processor.</summary>
    internal static IReadOnlyList<Way<TextFile>> All { get; } =
    [
        StreamReader, StreamReaderSync, ByHand, Pipe("PipeReader.Create", static stream => PipeReader.Create(stream)),
        Pipe("PipeReader.Create, 256 KiB", static stream => PipeReader.Create(stream, new StreamPipeReaderOptions(bufferSize: BufferSize))),
        OfPath("FilePipeReader", static path => FilePipeReader.Create(path)),
        OfPath("FilePipeReader, read-ahead", static path => FilePipeReader.Create(path, new() { PauseReadAheadThreshold = 1024 * 1024 })),
        Sequences, Batches, InMemory, Pipe("Nerdbank UsePipeReader", static stream => stream.UsePipeReader(BufferSize)),
#pragma warning disable CS0618 // Its own package says by now: use PipeReader.Create instead. The report of 2019 had it.
        Pipe("Nerdbank UseStrictPipeReader", static stream => stream.UseStrictPipeReader(BufferSize)),
#pragma warning restore CS0618
        Pipe("StreamConnection.GetReader", static stream => StreamConnection.GetReader(stream)),
    ];

    /// <summary>Those that give bytes; a loop by hand is the baseline.</summary>
    internal static IReadOnlyList<Way<TextFile>> Bytes { get; } = [ByHand, ByHandSmall, Batches, Sequences];

    /// <summary>Those that give strings.</summary>
    internal static IReadOnlyList<Way<TextFile>> Strings { get; } = [StreamReader, StreamReaderSync, FileReadLines, Text];

    /// <summary>Both, and those that use two processors.</summary>
    internal static IReadOnlyList<Way<TextFile>> WithTwo { get; } = [.. Bytes, .. Strings, Partitions];

    private static FileStream Open(TextFile file)
        => new(file.Path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, FileOptions.SequentialScan);

    // Over a stream that not every one of them closes.
    private static Way<TextFile> Pipe(string name, Func<FileStream, PipeReader> create) => new(name, async file =>
    {
        await using FileStream stream = Open(file);
        return await ParseAsync(create(stream), file);
    });

    private static Way<TextFile> OfPath(string name, Func<string, PipeReader> create)
        => new(name, file => ParseAsync(create(file.Path), file));

    private static async ValueTask<long> BatchesAsync(FilePipeReader reader, CancellationToken cancellationToken)
    {
        TParser parser = default;
        await foreach (LineBatch batch in reader.ReadLineBatchesAsync(cancellationToken: cancellationToken))
        {
            foreach (ReadOnlySpan<byte> line in batch)
            {
                parser.Take(line);
            }
        }

        return parser.Finish();
    }

    private static async ValueTask<long> ParseAsync(PipeReader reader, TextFile file)
    {
        TParser parser = default;
        while (true)
        {
            ReadResult result = await reader.ReadAsync();
            ReadOnlySequence<byte> rest = result.Buffer;
            TakeLines(ref rest, ref parser);
            reader.AdvanceTo(rest.Start, rest.End);
            if (result.IsCompleted)
            {
                break;
            }
        }

        await reader.CompleteAsync();
        return file.Check(parser.Finish());
    }

    // Gives every whole line to the parser and leaves what follows the last of them.
    private static void TakeLines(ref ReadOnlySequence<byte> buffer, ref TParser parser)
    {
        Span<byte> scratch = stackalloc byte[MaxLineLength];
        while (true)
        {
            ReadOnlySpan<byte> span = buffer.FirstSpan;
            buffer = buffer.Slice(span.Length - TakeLines(span, ref parser).Length);
            if (buffer.IsSingleSegment || buffer.PositionOf((byte)'\n') is not { } end)
            {
                return;
            }

            // The one line that begins in this segment and ends in a later one.
            ReadOnlySequence<byte> crossing = buffer.Slice(0, end);
            crossing.CopyTo(scratch);
            parser.Take(scratch[..(int)crossing.Length]);
            buffer = buffer.Slice(buffer.GetPosition(1, end));
        }
    }

    private static ReadOnlySpan<byte> TakeLines(ReadOnlySpan<byte> rest, scoped ref TParser parser)
    {
        for (int index; (index = rest.IndexOf((byte)'\n')) >= 0; rest = rest[(index + 1)..])
        {
            parser.Take(rest[..index]);
        }

        return rest;
    }
}

/// <summary>The grids of lines.</summary>
internal static class Lines
{
    private const long MiB = 1024 * 1024;
    private static readonly int[] s_lengths = [10, 30, 100, 1000];

    /// <summary>Three parsers, each over every way.</summary>
    internal static IReadOnlyList<Grid> Parsers(Scale scale) =>
    [
        Parser<LineParser>(scale, "lines", "Lines counted", TextFile.MakeLines),
        Parser<NdjsonParser>(scale, "ndjson", "NDJSON deserialised", TextFile.MakeNdjson),
        Parser<CsvParser>(scale, "csv", "CSV parsed", TextFile.MakeCsv),
    ];

    /// <summary>Lines of every length, as bytes and as strings.</summary>
    internal static IReadOnlyList<Grid> ByLength(Scale scale) =>
    [
        ByLength<LineParser>(scale, "lines-bytes", "Lines as bytes", LineWays<LineParser>.Bytes),
        ByLength<LineParser>(scale, "lines-text", "Lines as strings", LineWays<LineParser>.Strings),
    ];

    /// <summary>With two processors, which the report leaves out.</summary>
    internal static Grid WithTwo(Scale scale)
        => ByLength<LineParser>(scale, "lines-two", "Lines, with two processors", LineWays<LineParser>.WithTwo);

    private static Grid ByLength<TParser>(Scale scale, string key, string title, IReadOnlyList<Way<TextFile>> ways)
        where TParser : struct, ILineParser
        => new(
            key,
            $"{title}, {SizeText.Of(scale.ParsedBytes)}",
            "length of a line",
            10,
            new PairedMeasurement(scale.MinRounds, 15, scale.Sample),
            "**Lines**: long ones are found as fast as the file is read, by every way; a sequence costs more than a span.",
            folder => [.. s_lengths.Select(length => Column.Of(
                $"{Figures.Count(length)} B", ways, TextFile.MakeNumbers<TParser>(folder, scale.ParsedBytes, length)))])
        {
            MakeWarmUp = folder => Column.Of("99 B", ways, TextFile.MakeNumbers<TParser>(folder, MiB, lineLength: 99)).Candidates,
        };

    private static Grid Parser<TParser>(Scale scale, string key, string title, Func<TemporaryFolder, long, TextFile> make)
        where TParser : struct, ILineParser
        => new(
            key,
            $"{title}, {SizeText.Of(scale.ParsedBytes)}",
            "file",
            13,
            new PairedMeasurement(scale.MinRounds, 31, scale.Sample),
            "**Parsers**: where parsing takes most of the time, all ways that give bytes are alike.",
            folder => [Column.Of(SizeText.Of(scale.ParsedBytes), LineWays<TParser>.All, make(folder, scale.ParsedBytes))])
        {
            MakeWarmUp = folder => Column.Of("1 MiB", LineWays<TParser>.All, make(folder, MiB)).Candidates,
        };
}
