using System.Runtime.CompilerServices;

namespace FilePipelines.Benchmarks;

/// <summary>
/// <c>first</c>: how long the first file of a process takes, with all that is loaded and compiled for it. Each time in a process of its
/// own, every way in turn.
/// </summary>
internal static class FirstFile
{
    /// <summary>Followed by the way and the path: the process of one time.</summary>
    internal const string AloneCommand = "first-alone";
    internal const int FileLength = 4096;

    // The library compiled ahead of time. Only where it was built so: -p:Precompile=true.
    private const string Packed = "FilePipeReader, from the package";
    private const string Built = "FilePipeReader, from a project";
    private const string Stream = "PipeReader.Create(FileStream)";
    private const string ByHand = "by hand: RandomAccess.Read";
    private const string AllBytes = "File.ReadAllBytes";
    private const string Library = "Pipelines.File.dll";

    private static string PrecompiledLibrary => Path.Join(AppContext.BaseDirectory, "precompiled", Library);

    internal static async Task<int> RunAsync(string[] arguments)
    {
        Arguments given = new(arguments, "first [--rounds N]");
        int rounds = given.Number("--rounds", 21);
        if (given.AreWrong())
        {
            return 2;
        }

        foreach (Measured way in await MeasureAsync(rounds))
        {
            Console.WriteLine($"{way.Name,-34} {Figures.Time(way.Microseconds.Median)}, against the first {Figures.Ratio(way.Ratio)}");
        }

        return 0;
    }

    internal static async Task<IReadOnlyList<Measured>> MeasureAsync(int rounds)
    {
        using TemporaryFolder folder = new();
        string path = folder.PathOf("first.bin");
        await File.WriteAllBytesAsync(path, new byte[FileLength]);
        bool isPrecompiled = File.Exists(PrecompiledLibrary);
        if (isPrecompiled)
        {
            foreach (string file in Directory.GetFiles(AppContext.BaseDirectory))
            {
                File.Copy(file, folder.PathOf(Path.GetFileName(file)));
            }

            File.Copy(PrecompiledLibrary, folder.PathOf(Library), overwrite: true);
        }

        string[] ways = [Stream, .. isPrecompiled ? (string[])[Packed] : [], Built, ByHand, AllBytes];
        List<double>[] times = [.. ways.Select(_ => new List<double>())];
        for (int round = 0; round < rounds; round++)
        {
            for (int i = 0; i < ways.Length; i++)
            {
                ProcessStartInfo start = ways[i] == Packed
                    ? ProcessMeasurement.ProgramIn(folder.Path, AloneCommand, ways[i], path)
                    : ProcessMeasurement.Program(AloneCommand, ways[i], path);
                using Process process = Process.Start(start)!;
                times[i].Add(1000 * double.Parse(await process.StandardOutput.ReadToEndAsync(), CultureInfo.InvariantCulture));
                await process.WaitForExitAsync();
            }
        }

        return [.. ways.Select((way, index) => new Measured(way, times[index], times[0], 0, 0))];
    }

    /// <summary>Opens, reads and closes the file, and prints how many milliseconds that took.</summary>
    internal static int Read(string way, string path)
    {
        long begin = Stopwatch.GetTimestamp();
        long length = way switch
        {
            Stream => ReadStream(path),
            ByHand => ReadByHand(path),
            AllBytes => ReadAllBytes(path),
            _ => ReadFile(path),
        };
        double milliseconds = Stopwatch.GetElapsedTime(begin).TotalMilliseconds;
        Console.WriteLine(milliseconds.ToString(CultureInfo.InvariantCulture));
        return length == FileLength ? 0 : 1;
    }

    // Each by itself: what is compiled for one way is not for the others.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long ReadStream(string path)
        => ReadAllAsync(PipeReader.Create(new FileStream(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0))).AsTask()
            .GetAwaiter().GetResult();

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long ReadFile(string path) => ReadAllAsync(FilePipeReader.Create(path)).AsTask().GetAwaiter().GetResult();

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long ReadAllBytes(string path) => File.ReadAllBytes(path).Length;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long ReadByHand(string path)
    {
        using SafeFileHandle handle = File.OpenHandle(path);
        byte[] buffer = new byte[2 * FileLength];
        long length = 0;
        for (int read; (read = RandomAccess.Read(handle, buffer, length)) > 0;)
        {
            length += read;
        }

        return length;
    }

    private static async ValueTask<long> ReadAllAsync(PipeReader reader)
    {
        long length = 0;
        ReadResult result;
        do
        {
            result = await reader.ReadAsync();
            length += result.Buffer.Length;
            reader.AdvanceTo(result.Buffer.End);
        }
        while (!result.IsCompleted);

        await reader.CompleteAsync();
        return length;
    }
}
