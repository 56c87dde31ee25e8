namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>Tests of a server of resumable uploads in a folder of its own.</summary>
public abstract class UploadsInAFolder : InARoot
{
    protected string Root => _root;

    /// <summary>The server, which a test starts.</summary>
    private protected TusServer Server { get; set; } = null!;

    /// <summary>Where the uploads are that are not finished.</summary>
    protected string Folder => PathOf("unfinished");

    /// <summary>Where a finished one goes.</summary>
    protected string Saved => PathOf("saved.bin");

    public override async ValueTask DisposeAsync()
    {
        if (Server is not null)
        {
            await Server.DisposeAsync();
        }

        await base.DisposeAsync();
        GC.SuppressFinalize(this);
    }

    private protected async Task StartAsync(Func<CompletedUpload, CancellationToken, ValueTask> complete, bool isDurable = false)
        => Server = await TusServer.StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,
            Durable = isDurable,
            OnCompletedAsync = complete,
        });

    /// <summary>
    /// Makes an upload of 5 bytes, sends 4 of them, and leaves it as a process does that is killed while it gives the upload its name.
    /// </summary>
    private protected async Task<Uri> LeaveBetweenRenamesAsync()
    {
        Uri upload = await Server.CreateAsync(5);
        await Server.PatchAsync(upload, 0, "hell"u8.ToArray());
        string id = upload.Segments[^1];
        string state = Path.Combine(Folder, id + ".json");
        string part = Path.Combine(Folder, id + ".part");
        Assert.True(FileIdentity.TryGet(part, out FileIdentity identity));
        string told = await File.ReadAllTextAsync(state, _stop);
        string saving = $"\"savingTo\":{System.Text.Json.JsonSerializer.Serialize(Saved)},\"identity\":\"{identity}\"";
        Assert.Contains("\"savingTo\":null,\"identity\":null", told, StringComparison.Ordinal);
        told = told.Replace("\"savingTo\":null,\"identity\":null", saving, StringComparison.Ordinal);
        await File.WriteAllTextAsync(state, told, _stop);
        File.Move(part, UploadStore.BetweenPathOf(id, Saved));
        return upload;
    }
}
