namespace FilePipelines.Benchmarks;

/// <summary>What is copied where.</summary>
internal sealed record CopyPoint(IntegerFile From, string To);

/// <summary>Every way to copy a file to a new one; the first is the baseline.</summary>
internal static class Copying
{
    // As the streams here and File.Copy do it: FileMode.Create truncates even a new file, and ext4 then allocates and begins to write it
    // when it is closed.
    private static readonly FilePipeWriterOptions s_newFile = new() { Mode = FileMode.CreateNew };

    private static readonly Way<CopyPoint>[] s_ways =
    [
        Way("FileStream.CopyToAsync", static async (source, destination) =>
        {
            await using FileStream from = OpenSource(source);
            await using FileStream to = MakeDestination(destination);
            await from.CopyToAsync(to);
        }),
        Way("File.Copy", static (source, destination) =>
        {
            File.Copy(source, destination);
            return default;
        }),
        Way("PipeReader.Create to PipeWriter.Create", static (source, destination)
            => CopyAsync(PipeReader.Create(OpenSource(source)), PipeWriter.Create(MakeDestination(destination)))),
        Way("FilePipeReader to FilePipeWriter", static (source, destination)
            => CopyAsync(FilePipeReader.Create(source), FilePipeWriter.Create(destination, s_newFile))),

        // As it is where the system cannot copy by itself: the reader does not know that the writer's end is a file.
        Way("FilePipeReader to FilePipeWriter, through memory", static async (source, destination) =>
        {
            FilePipeReader reader = FilePipeReader.Create(source);
            FilePipeWriter writer = FilePipeWriter.Create(destination, s_newFile);
            await reader.CopyToAsync(writer.AsStream(leaveOpen: true));
            await reader.CompleteAsync();
            await writer.CompleteAsync();
        }),
        Way("FilePipeReader to FileStream", static async (source, destination) =>
        {
            await using FileStream to = MakeDestination(destination);
            FilePipeReader reader = FilePipeReader.Create(source);
            await reader.CopyToAsync(to);
            await reader.CompleteAsync();
        }),
    ];

    internal static Grid Grid(Scale scale) => new(
        "copy", "Copying a file to a new one", "length", 16, new PairedMeasurement(scale.MinRounds, 31, scale.Sample / 2, maxRuns: 20),
        "**Copying**: `File.Copy` has the kernel copy, or share blocks.",
        folder => [.. scale.Points([1L, 128L], 0).Select(mebibytes => Column.Of(
            $"{mebibytes} MiB", s_ways, new CopyPoint(IntegerFile.Make(folder, mebibytes * 1024 * 1024), folder.PathOf("copy.bin"))))]);

    private static Way<CopyPoint> Way(string name, Func<string, string, ValueTask> copyAsync) => new(
        name,
        async point =>
        {
            await copyAsync(point.From.Path, point.To);
            return new FileInfo(point.To).Length == point.From.Length ? point.From.Length
                : throw new InvalidDataException($"{name} copied something other than {point.From.Length} bytes.");
        },
        static point => File.Delete(point.To));

    private static async ValueTask CopyAsync(PipeReader reader, PipeWriter writer)
    {
        await reader.CopyToAsync(writer);
        await reader.CompleteAsync();
        await writer.CompleteAsync();
    }

    private static FileStream OpenSource(string path)
        => new(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, FileOptions.SequentialScan);

    private static FileStream MakeDestination(string path)
        => new(path, FileMode.CreateNew, FileAccess.Write, FileShare.Read, bufferSize: 0);
}
