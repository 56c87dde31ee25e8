using Microsoft.AspNetCore.Http;

namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>Requests that no client of the protocol sends, and what they leave.</summary>
public sealed class OddRequestTests : UploadsInAFolder
{
    [Theory]
    [InlineData("HEAD")]
    [InlineData("PATCH")]
    [InlineData("DELETE")]
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
}
