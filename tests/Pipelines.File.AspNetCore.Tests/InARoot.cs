namespace FilePipelines.AspNetCore.Tests;

/// <summary>Tests with a folder of their own, and mostly a server that serves it or saves there; both are gone when each is over.</summary>
public abstract class InARoot : IAsyncLifetime
{
    private protected readonly string _root = Directory.CreateTempSubdirectory("file-sending-").FullName;
    private protected readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    /// <summary>What a test starts, if it does.</summary>
    private protected FileServer _server = null!;
    private protected HttpClient _client = null!;

    public virtual ValueTask InitializeAsync() => ValueTask.CompletedTask;

    public virtual async ValueTask DisposeAsync()
    {
        _client?.Dispose();
        if (_server is not null)
        {
            await _server.DisposeAsync();
        }

        Directory.Delete(_root, recursive: true);
        GC.SuppressFinalize(this);
    }

    private protected string PathOf(string name) => Path.Combine(_root, name);

    /// <summary>The files of these names are in the folder, and no other, also none that is not finished.</summary>
    private protected void AssertFiles(params string[] names)
        => Assert.Equal(
            names.Order(StringComparer.Ordinal), Directory.EnumerateFiles(_root, "*", new EnumerationOptions { AttributesToSkip = 0 })
                .Select(path => Path.GetFileName(path)).Order(StringComparer.Ordinal));
}
