namespace FilePipelines.Tests;

/// <summary>A folder of one test's own, gone when the test is over.</summary>
public sealed class TempFolder : IDisposable
{
    /// <summary>What the names of all of them begin with.</summary>
    public const string Prefix = "pipelines-file-";

    public TempFolder() => Path = Directory.CreateTempSubdirectory(Prefix).FullName;

    public string Path { get; }

    public string File(string name) => System.IO.Path.Combine(Path, name);

    public string File(string name, byte[] content)
    {
        string path = File(name);
        System.IO.File.WriteAllBytes(path, content);
        return path;
    }

    public void Dispose()
    {
        // On Windows a file that is open cannot go, and a reader that was completed in the middle of a read closes it when the system is
        // done with that. Elsewhere a process that was killed may make its last file meanwhile. A test that failed leaves files open: what
        // is told is that failure, and not this one.
        for (int attempt = 1; attempt < 40; attempt++)
        {
            try
            {
                Directory.Delete(Path, recursive: true);
                return;
            }
            catch (IOException)
            {
                Thread.Sleep(50);
            }
        }
    }
}
