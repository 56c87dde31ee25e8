using FilePipelinesBenchmarks.Files;

namespace FilePipelinesBenchmarks.SmallFiles;

/// <summary>One way to read a whole small file.</summary>
internal abstract class SmallFileWay(string name)
{
    internal string Name { get; } = name;

    /// <summary>Reads all files, one after the other, and checks what they held.</summary>
    internal async ValueTask<long> ReadAllAsync(SmallFileSet files)
    {
        long answer = 0;
        foreach (string path in files.Paths)
        {
            answer += await ReadAsync(path);
        }

        return files.Check(answer);
    }

    /// <summary>Opens one, reads it and closes it. Every file here arrives in one buffer.</summary>
    protected abstract ValueTask<long> ReadAsync(string path);
}
