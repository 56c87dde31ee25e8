namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>What happens between the last byte of an upload and the answer.</summary>
public sealed class FinishingTests : UploadsInAFolder
{
    private readonly ManualTime _time = new();

    [Fact]
    public async Task OnCompleted_ThatHasSaved_OpensTheFileByItsName()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "There, who opens the file has to share writing.");
        string? read = null;
        await StartAsync(async (upload, stop) =>
        {
            await upload.SaveAsync(Saved, cancellationToken: stop);
            read = await File.ReadAllTextAsync(Saved, stop);
            await File.AppendAllTextAsync(Saved, " and more", stop);
        });
        Uri upload = await Server.CreateAsync(5);
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, "hello"u8.ToArray())).Status);
        Assert.Equal(("hello", "hello and more"), (read, await File.ReadAllTextAsync(Saved, _stop)));
    }

    [Fact]
    public async Task OnCompleted_WhileItRuns_KeepsOtherRequestsOut()
    {
        TaskCompletionSource runs = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource mayEnd = new(TaskCreationOptions.RunContinuationsAsynchronously);
        int calls = 0;
        await StartAsync(async (upload, stop) =>
        {
            calls++;
            await upload.SaveAsync(Saved, new SaveBodyOptions { Overwrite = false }, stop);
            runs.SetResult();
            await mayEnd.Task.WaitAsync(stop);
        });
        Uri upload = await Server.CreateAsync(5);
        Task<TusAnswer> first = Server.PatchAsync(upload, 0, "hello"u8.ToArray());
        await runs.Task.WaitAsync(_stop);

        // Its bytes have their name already. In this process and in another one, the upload is still that of the first request.
        Assert.Equal(4, await Server.OffsetAsync(upload));
        Assert.Equal(423, (await Server.PatchAsync(upload, 4, "o"u8.ToArray())).Status);
        Assert.Equal(423, (await Server.SendAsync("DELETE", upload, null)).Status);
        using (UploadStore other = new(new ResumableUploadOptions { Folder = Folder }, _time))
        {
            Assert.Equal(423, Assert.Throws<BadHttpRequestException>(() => other.Open(upload.Segments[^1])).StatusCode);
        }

        mayEnd.SetResult();
        Assert.Equal(204, (await first).Status);
        Assert.Equal((5, 1), (await Server.OffsetAsync(upload), calls));
        Assert.Single(Directory.EnumerateFileSystemEntries(Folder));
    }

    [Fact]
    public async Task Save_ToAnotherFileSystem_ThatIsCalledAgain_FindsTheFileThere()
    {
        string other = "/dev/shm/" + Path.GetFileName(Root);
        Assert.SkipUnless(Directory.Exists("/dev/shm"), "There is no other file system.");
        Directory.CreateDirectory(other);
        try
        {
            string path = Path.Combine(other, "f");
            int calls = 0;
            await StartAsync(async (upload, stop) =>
            {
                await upload.SaveAsync(path, new SaveBodyOptions { Overwrite = false }, stop);
                if (++calls == 1)
                {
                    throw new InvalidOperationException("not yet");
                }
            });
            Uri upload = await Server.CreateAsync(5);
            Assert.Equal(500, (await Server.PatchAsync(upload, 0, "hello"u8.ToArray())).Status);
            Assert.Equal(4, await Server.OffsetAsync(upload));
            Assert.Equal(204, (await Server.PatchAsync(upload, 4, "X"u8.ToArray())).Status);
            Assert.Equal(("hello", 2), (await File.ReadAllTextAsync(path, _stop), calls));
            Assert.Single(Directory.EnumerateFileSystemEntries(other));
            Assert.Single(Directory.EnumerateFileSystemEntries(Folder));
        }
        finally
        {
            Directory.Delete(other, recursive: true);
        }
    }

    [Fact]
    public async Task Save_UnderAnotherNameThanBefore_WhichIsTaken_DoesNotTakeThatFileForItsOwn()
    {
        string second = PathOf("second.bin");
        await File.WriteAllTextAsync(second, "somebody else's", _stop);
        int calls = 0;
        await StartAsync(async (upload, stop) =>
        {
            if (++calls == 1)
            {
                await upload.SaveAsync(Saved, cancellationToken: stop);
                throw new InvalidOperationException("not yet");
            }

            await Assert.ThrowsAsync<FileExistsException>(() => upload.SaveAsync(second, new SaveBodyOptions { Overwrite = false }, stop));
            await upload.SaveAsync(second, cancellationToken: stop);
        });
        Uri upload = await Server.CreateAsync(5);
        Assert.Equal(500, (await Server.PatchAsync(upload, 0, "hello"u8.ToArray())).Status);
        Assert.Equal(204, (await Server.PatchAsync(upload, 4, "o"u8.ToArray())).Status);
        Assert.Equal(("hello", 2), (await File.ReadAllTextAsync(second, _stop), calls));
        Assert.Single(Directory.EnumerateFileSystemEntries(Folder));
    }

    [Theory]
    [InlineData(0, 500), InlineData(0, 422), InlineData(5, 422)]
    public async Task Creation_WhoseUploadIsRemoved_TellsNoAddress(int length, int status)
    {
        await StartAsync((_, _) => throw (status == 500 ? new IOException("not yet") : new BadHttpRequestException("no", status)));
        TusAnswer answer = await Server.SendAsync(
            "POST", Server.Uploads, length == 0 ? null : "hello"u8.ToArray(), ("Upload-Length", $"{length}"));
        Assert.Equal((status, ""), (answer.Status, answer["Location"]));
        Assert.Empty(Directory.EnumerateFileSystemEntries(Folder));
    }

    [Fact]
    public async Task FinalUpload_ThatCannotBeFinished_IsRemoved_AndMayBeMadeAgain()
    {
        // No request goes on with a final upload, so nobody could ever finish it.
        int calls = 0;
        await StartAsync(async (upload, stop) =>
        {
            if (++calls == 1)
            {
                throw new InvalidOperationException("not yet");
            }

            await upload.SaveAsync(Saved, cancellationToken: stop);
        });
        Uri[] parts = [await PartAsync("hello"), await PartAsync(" world")];
        (string, string) final = ("Upload-Concat", "final;" + string.Join(' ', parts.Select(part => part.AbsolutePath)));
        TusAnswer answer = await Server.PostAsync(null, final);
        Assert.Equal((500, ""), (answer.Status, answer["Location"]));
        Assert.Equal(6, Directory.EnumerateFileSystemEntries(Folder).Count());
        Assert.Equal(201, (await Server.PostAsync(null, final)).Status);
        Assert.Equal("hello world", await File.ReadAllTextAsync(Saved, _stop));
    }

    [Fact]
    public async Task FinalUpload_OfAPartThatHasLostBytes_IsRefused()
    {
        await StartAsync((_, _) => throw new InvalidOperationException("never"));
        Uri part = await PartAsync("hello");

        // As a power failure may leave it, without Durable.
        await File.WriteAllTextAsync(Path.Combine(Folder, part.Segments[^1] + ".part"), "he", _stop);
        TusAnswer answer = await Server.PostAsync(null, ("Upload-Concat", "final;" + part.AbsolutePath));
        Assert.Equal((400, ""), (answer.Status, answer["Location"]));
        Assert.Equal(3, Directory.EnumerateFileSystemEntries(Folder).Count());
    }

    private async Task<Uri> PartAsync(string text)
    {
        Uri part = await Server.CreateAsync(text.Length, ("Upload-Concat", "partial"));
        Assert.Equal(204, (await Server.PatchAsync(part, 0, Encoding.ASCII.GetBytes(text))).Status);
        return part;
    }

    private async Task StartAsync(Func<CompletedUpload, CancellationToken, ValueTask> complete)
        => Server = await TusServer.StartAsync(new ResumableUploadOptions { Folder = Folder, OnCompletedAsync = complete }, _time);
}
