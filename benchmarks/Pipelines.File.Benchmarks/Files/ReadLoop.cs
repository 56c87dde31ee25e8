namespace FilePipelines.Benchmarks;

/// <summary>What one writes by hand for what may cross a buffer: one array, FileStream.Read behind what is left over.</summary>
internal static class ReadLoop
{
    internal delegate ReadOnlySpan<byte> TakeWhole(ReadOnlySpan<byte> bytes);

    /// <summary>Reads a file to its end.</summary>
    /// <param name="size">Of the array; what is taken at once is shorter.</param>
    /// <param name="take">Takes all that is whole, and returns the rest.</param>
    /// <returns>How many bytes are left over in the end.</returns>
    internal static int Run(string path, int size, TakeWhole take)
    {
        byte[] buffer = new byte[size];
        using FileStream stream = new(path, FileMode.Open, FileAccess.Read, FileShare.Read, bufferSize: 0, FileOptions.SequentialScan);
        int left = 0;
        for (int read; (read = stream.Read(buffer.AsSpan(left))) > 0;)
        {
            ReadOnlySpan<byte> rest = take(buffer.AsSpan(0, left + read));
            rest.CopyTo(buffer);
            left = rest.Length;
        }

        return left;
    }
}
