namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>What all uploads together take, and what removes those that nobody finishes.</summary>
public sealed class QuotaTests : UploadsInAFolder
{
    private readonly ManualTime _time = new();

    [Fact]
    public async Task Request_ThatTellsTheLengthAndIsRefused_TakesNothing()
    {
        Server = await TusServer.StartAsync(Options(100), _time);
        Uri upload = await Server.CreateAsync(null, ("Upload-Defer-Length", "1"));
        for (int i = 0; i < 3; i++)
        {
            TusAnswer answer = await Server.PatchAsync(upload, 0, [1], ("Upload-Length", "60"), ("Upload-Checksum", "md5 x"));
            Assert.Equal(400, answer.Status);
        }

        Assert.Equal(204, (await Server.SendAsync("DELETE", upload, null)).Status);
        Assert.Equal(201, (await Server.PostAsync(100)).Status);
    }

    [Fact]
    public async Task Upload_ThatAnotherProcessHasRemoved_TakesNothingAfterTheNextLook()
    {
        Server = await TusServer.StartAsync(Options(100), _time);
        using UploadStore one = new(Options(100), _time);
        Uri upload = await Server.CreateAsync(100);
        one.Sweep();
        Assert.False(one.TryCount(1));
        Assert.Equal(204, (await Server.SendAsync("DELETE", upload, null)).Status);
        one.Sweep();
        Assert.True(one.TryCount(100));
        Assert.False(one.TryCount(1));
    }

    [Fact]
    public void Look_ThatHasReadTheStateOfAnUploadThatIsGone_DoesNotCountIt()
    {
        UploadQuota quota = new(Options(100));
        UploadState state = new() { Length = 60 };
        for (int i = 0; i < 2; i++)
        {
            Assert.True(quota.TryAdd("a", null, 60));
            quota.BeginLook();
            quota.Release("a", null);
            quota.Saw("a", state);
            Assert.True(quota.TryAdd("b", null, 100));
            quota.EndLook();
            quota.Release("b", null);
        }

        // That of another process, and one that is there again.
        quota.BeginLook();
        quota.Saw("a", state);
        quota.EndLook();
        Assert.False(quota.TryAdd("b", null, 41));
    }

    [Fact]
    public async Task Look_WhileBytesComeThatNoStateTellsOf_CountsThemOnce()
    {
        using UploadStore store = new(Options(100), _time);
        Pipe body = new();
        await body.Writer.WriteAsync(new byte[60], _stop);
        await body.Writer.CompleteAsync();
        using (StoredUpload upload = await store.CreateAsync(UploadStore.NewId(), new UploadState()))
        {
            await Assert.ThrowsAsync<InvalidDataException>(() => upload.AppendAsync(
                body.Reader,
                isChecked: true,
                _ =>
                {
                    store.Sweep();
                    Assert.False(store.TryCount(41));
                    throw new InvalidDataException();
                },
                _stop));
        }

        Assert.True(store.TryCount(100));
        Assert.False(store.TryCount(1));
    }

    [Fact]
    public async Task Look_BetweenTheRemovalAndTheEndOfItsRequest_CountsItOnce()
    {
        using UploadStore store = new(Options(100), _time);
        using (StoredUpload upload = await store.CreateAsync(UploadStore.NewId(), new UploadState { Length = 60 }))
        {
            upload.Remove();
            store.Sweep();
        }

        Assert.True(store.TryCount(100));
        Assert.False(store.TryCount(1));
    }

    [Fact]
    public async Task Uploads_LongerTogetherThanANumber_LeaveNoRoom()
    {
        Server = await TusServer.StartAsync(Options(null), _time);
        Uri[] uploads = [await Server.CreateAsync(long.MaxValue), await Server.CreateAsync(long.MaxValue)];
        using UploadStore store = new(Options(100), _time);
        Assert.False(store.TryCount(1));
        store.Sweep();
        Assert.False(store.TryCount(1));
        foreach (Uri upload in uploads)
        {
            Assert.Equal(204, (await Server.SendAsync("DELETE", upload, null)).Status);
        }

        store.Sweep();
        Assert.True(store.TryCount(100));
    }

    [Fact]
    public async Task Upload_WhoseStateCanNeitherBeSavedNorRemoved_TakesNothingAndLeavesItsLock()
    {
        using UploadStore store = new(Options(100), _time);
        string id = UploadStore.NewId();
        Directory.CreateDirectory(store.StatePathOf(id));
        await Assert.ThrowsAnyAsync<Exception>(() => store.CreateAsync(id, new UploadState { Length = 60 }));
        Directory.Delete(store.StatePathOf(id));
        using FileStream alone = new(store.LockPathOf(id), FileMode.Open, FileAccess.ReadWrite, FileShare.None);
        store.Sweep();
        Assert.True(store.TryCount(100));
    }

    [Fact]
    public async Task Upload_ThatTwoFoldersRefuse_KeepsItsBytes()
    {
        Func<CompletedUpload, CancellationToken, ValueTask> complete = async (upload, stop) =>
        {
            try
            {
                await upload.SaveAsync(PathOf(new string('x', 300)), SaveBodyOptions.Default, stop);
            }
            catch (IOException)
            {
                await upload.SaveAsync(Path.Combine(Root, "missing", "x"), SaveBodyOptions.Default, stop);
            }
        };
        Server = await TusServer.StartAsync(new ResumableUploadOptions { Folder = Folder, OnCompletedAsync = complete }, _time);
        Uri upload = await Server.CreateAsync(10);
        Assert.Equal(500, (await Server.PatchAsync(upload, 0, new byte[10])).Status);
        TusAnswer answer = await Server.SendAsync("HEAD", upload, null);
        Assert.Equal("9", answer["Upload-Offset"]);
    }

    [Fact]
    public async Task Look_GoesOnBehindWhatCannotBeRead()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Not every user of Windows may make symbolic links.");
        Server = await TusServer.StartAsync(Options(null), _time);
        for (int i = 0; i < 20; i++)
        {
            await Server.CreateAsync(10);
            string loop = Path.Combine(Folder, UploadStore.NewId() + ".json");
            File.CreateSymbolicLink(loop, loop);
        }

        _time.Advance(TimeSpan.FromDays(2));
        using UploadStore store = new(Options(null), _time);
        store.Sweep();
        Assert.All(Directory.EnumerateFiles(Folder), path => Assert.NotNull(new FileInfo(path).LinkTarget));
    }

    private ResumableUploadOptions Options(long? total) => new() { Folder = Folder, MaxTotalLength = total };
}
