namespace FilePipelines.Benchmarks;

/// <summary>A new folder under the temporary one, which the environment (TMPDIR on Unix) chooses; deleted with all that is in it.</summary>
internal sealed class TemporaryFolder : IDisposable
{
    internal string Path { get; } = Directory.CreateTempSubdirectory("pipelines-file-benchmarks-").FullName;
    internal string PathOf(string fileName) => System.IO.Path.Join(Path, fileName);
    public void Dispose() => Directory.Delete(Path, recursive: true);
}
