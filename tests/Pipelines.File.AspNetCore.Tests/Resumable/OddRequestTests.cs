namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>Requests that no client of the protocol sends, names and parts that are not what they should be, and what is left.</summary>
public sealed class OddRequestTests : UploadsInAFolder
{
    [Theory]
    [InlineData("HEAD"), InlineData("PATCH"), InlineData("DELETE")]
    public async Task Upload_OfANameThatIsTooLongForAFile_Is404(string method)
    {
        await StartAsync(async (upload, stop) => await upload.SaveAsync(Saved, cancellationToken: stop));
        Uri upload = new($"{Server.Uploads}/{new string('0', 300)}");
        TusAnswer answer = await Server.SendAsync(method, upload, method == "PATCH" ? [1] : null, ("Upload-Offset", "0"));
        Assert.Equal(404, answer.Status);
    }

    [Fact]
    public async Task Upload_BetweenTwoRenames_ThatIsNotSavedTheNextTime_IsRemoved()
    {
        await StartAsync((_, _) => ValueTask.CompletedTask);
        Uri upload = await LeaveBetweenRenamesAsync();
        Assert.Equal(204, (await Server.PatchAsync(upload, 4, "o"u8.ToArray())).Status);

        Assert.Equal([Folder], Directory.EnumerateFileSystemEntries(Root));
    }

    [Theory]
    [InlineData("Upload-Checksum", "md5 abcd", 400)]
    [InlineData("Upload-Metadata", "filename YQ==", 413)]
    public async Task Creation_WithABodyThatIsRefused_LeavesNothing(string name, string value, int status)
    {
        await StartAsync(async (upload, stop) => await upload.SaveAsync(Saved, cancellationToken: stop));
        TusAnswer answer = await Server.SendAsync("POST", Server.Uploads, new byte[20], ("Upload-Length", "10"), (name, value));
        Assert.Equal((status, ""), (answer.Status, answer["Location"]));
        Assert.Empty(Directory.EnumerateFileSystemEntries(Folder));
    }

    [Fact]
    public async Task EmptyUpload_ThatCannotBeFinished_IsRemoved_BecauseNoByteOfItIsMissing()
    {
        await StartAsync((_, _) => throw new BadHttpRequestException("Not now.", 503));
        Uri upload = await Server.CreateAsync(null, ("Upload-Defer-Length", "1"));
        Assert.Equal(503, (await Server.PatchAsync(upload, 0, [], ("Upload-Length", "0"))).Status);
        Assert.Equal(404, (await Server.HeadAsync(upload)).Status);
        Assert.Equal(503, (await Server.PostAsync(0)).Status);
        Assert.Empty(Directory.EnumerateFileSystemEntries(Folder));
    }

    [Fact]
    public async Task Fifo_OfTheNameOfAnUpload_IsNotReplaced()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It calls mkfifo.");
        using Process made = Process.Start("mkfifo", Saved);
        await made.WaitForExitAsync(_stop);
        Exception? error = null;
        Server = await TusServer.StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,
            OnCompletedAsync = async (upload, stop) =>
            {
                error = await Record.ExceptionAsync(() => upload.SaveAsync(Saved, cancellationToken: stop));
                await upload.SaveAsync(PathOf("other.bin"), cancellationToken: stop);
            },
        });
        Uri upload = await Server.CreateAsync(5);
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, "hello"u8.ToArray()).WaitAsync(Eventually.Limit, _stop)).Status);
        Assert.IsType<Pipelines.File.FileExistsException>(error);
        Assert.Equal(0, new FileInfo(Saved).Length);
        Assert.Equal("hello", await File.ReadAllTextAsync(PathOf("other.bin"), _stop));
    }

    [Fact]
    public async Task EmptyFile_OfTheNameOfAnUpload_IsReplaced()
    {
        await File.WriteAllTextAsync(Saved, "", _stop);
        Server = await TusServer.StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,
            OnCompletedAsync = async (upload, stop) => await upload.SaveAsync(Saved, cancellationToken: stop),
        });
        Uri upload = await Server.CreateAsync(5);
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, "hello"u8.ToArray())).Status);
        Assert.Equal("hello", await File.ReadAllTextAsync(Saved, _stop));
    }

    [Fact]
    public async Task FinalUpload_WhosePartIsRemovedBeforeItIsRead_Is400_AndLeavesNothing()
    {
        Server = await TusServer.StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,

            // Before the parts are read, and after they were looked at.
            OnRequestAsync = (upload, _) =>
            {
                if (!upload.IsPartial && upload.HttpContext.Request.Headers["Upload-Concat"].Count > 0)
                {
                    Array.ForEach(Directory.GetFiles(Folder), File.Delete);
                }

                return ValueTask.CompletedTask;
            },
        });
        Uri part = await Server.CreateAsync(5, ("Upload-Concat", "partial"));
        Assert.Equal(204, (await Server.PatchAsync(part, 0, "hello"u8.ToArray())).Status);
        TusAnswer answer = await Server.SendAsync("POST", Server.Uploads, null, ("Upload-Concat", $"final;{part.AbsolutePath}"));
        Assert.Equal(400, answer.Status);
        Assert.Empty(Directory.GetFiles(Folder));
    }
}
