namespace FileSendingTests.Resumable;

/// <summary>Tests of a server of resumable uploads in a folder of its own.</summary>
public abstract class UploadsInAFolder : IAsyncDisposable
{
    protected string Root { get; } = Directory.CreateTempSubdirectory("resumable-").FullName;

    /// <summary>The server, which a test starts.</summary>
    private protected TusServer Server { get; set; } = null!;

    /// <summary>Where the uploads are that are not finished.</summary>
    protected string Folder => PathOf("unfinished");

    /// <summary>Where a finished one goes.</summary>
    protected string Saved => PathOf("saved.bin");

    public async ValueTask DisposeAsync()
    {
        if (Server is not null)
        {
            await Server.DisposeAsync();
        }

        Directory.Delete(Root, recursive: true);
        GC.SuppressFinalize(this);
    }

    protected string PathOf(string name) => Path.Combine(Root, name);
}
