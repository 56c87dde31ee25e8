using Microsoft.Win32.SafeHandles;

namespace FilePipelinesBenchmarks.Cold;

/// <summary>One way to read pieces at random.</summary>
/// <param name="Name">What it is called in tables.</param>
/// <param name="ReadAsync">Reads the pieces of one reader, by its number, and gives the bytes.</param>
internal sealed record RandomReadWay(string Name, Func<SafeFileHandle, RandomReadCase, int, Task<long>> ReadAsync)
{
    /// <summary>All readers at once, on the thread pool, over one handle.</summary>
    internal async ValueTask<long> RunAsync(RandomReadCase point)
    {
        using SafeFileHandle handle = File.OpenHandle(
            point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, FileOptions.RandomAccess);
        long[] bytes = await Task.WhenAll(
            Enumerable.Range(0, point.Readers).Select(reader => Task.Run(() => ReadAsync(handle, point, reader))));
        return point.Finish(bytes);
    }
}
