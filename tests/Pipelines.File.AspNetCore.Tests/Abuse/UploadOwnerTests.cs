using Microsoft.Extensions.Options;

namespace FilePipelines.AspNetCore.Tests.Abuse;

/// <summary>A user who tries to get at the resumable uploads of another one.</summary>
public sealed class UploadOwnerTests : Resumable.UploadsInAFolder
{
    private static readonly (string, string) s_one = ("X-User", "one");
    private static readonly (string, string) s_two = ("X-User", "two");

    [Fact]
    public async Task Upload_IsThatOfItsOwnerOnly()
    {
        await StartAsync(Options());
        Uri upload = await Server.CreateAsync(3, s_one);

        Assert.Equal(404, (await Server.SendAsync("HEAD", upload, null, s_two)).Status);
        Assert.Equal(404, (await Server.PatchAsync(upload, 0, "abc"u8.ToArray(), s_two)).Status);
        Assert.Equal(404, (await Server.SendAsync("DELETE", upload, null, s_two)).Status);
        Assert.Equal(403, (await Server.SendAsync("HEAD", upload, null)).Status);
        Assert.Equal(403, (await Server.PostAsync(3)).Status);

        Assert.Equal(200, (await Server.SendAsync("HEAD", upload, null, s_one)).Status);
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, "abc"u8.ToArray(), s_one)).Status);
    }

    [Fact]
    public async Task Part_OfAnotherOwner_IsNotConcatenated()
    {
        await StartAsync(Options());
        Uri part = await Server.CreateAsync(3, s_one, ("Upload-Concat", "partial"));
        await Server.PatchAsync(part, 0, "abc"u8.ToArray(), s_one);

        Assert.Equal(400, (await Server.PostAsync(null, s_two, ("Upload-Concat", "final;" + part.AbsolutePath))).Status);
        Assert.Equal(400, (await Server.PostAsync(
            null, s_one, ("Upload-Concat", $"final;{part.AbsolutePath} {part.AbsolutePath}"))).Status);
        Assert.Equal(201, (await Server.PostAsync(null, s_one, ("Upload-Concat", "final;" + part.AbsolutePath))).Status);
    }

    [Fact]
    public async Task Question_TellsWhatIsWanted_AndRefusesWithAStatus()
    {
        List<string> asked = [];
        int? refused = null;
        ResumableUploadOptions options = Options();
        options.OnRequestAsync = (request, _) =>
        {
            string parts = string.Join(',', request.Parts.Select(part => part.Owner + part.Length));
            asked.Add($"{request.Operation} {request.Owner} {request.HttpContext.Request.Method} {parts}");
            if (refused is { } status)
            {
                request.Refuse(status);
            }

            return ValueTask.CompletedTask;
        };
        await StartAsync(options);
        Uri part = await Server.CreateAsync(3, s_one, ("Upload-Concat", "partial"));
        await Server.SendAsync("HEAD", part, null, s_one);
        await Server.PatchAsync(part, 0, "abc"u8.ToArray(), s_one);
        await Server.PostAsync(null, s_one, ("Upload-Concat", "final;" + part.AbsolutePath));
        refused = 418;
        Assert.Equal(418, (await Server.SendAsync("POST", part, null, s_one, ("X-HTTP-Method-Override", "DELETE"))).Status);
        refused = null;
        Assert.Equal(200, (await Server.SendAsync("HEAD", part, null, s_one)).Status);
        Assert.Equal(
            [
                "Create one POST ", "Read one HEAD ", "Append one PATCH ", "Concatenate one POST one3", "Delete one DELETE ",
                "Read one HEAD ",
            ],
            asked);
        Assert.Throws<ArgumentOutOfRangeException>(
            () => new ResumableUploadRequest(new DefaultHttpContext(), "", new UploadState(), default, []).Refuse(200));
    }

    [Theory]
    [InlineData("GET", true, 405)]
    [InlineData("HEAD", true, 200)]
    [InlineData("POST", false, 405)]
    [InlineData("POST", true, 204)]
    public async Task MethodOverride_IsThatOfAPostOnly_AndCanBeTurnedOff(string method, bool isAllowed, int status)
    {
        ResumableUploadOptions options = Options();
        options.AllowMethodOverride = isAllowed;
        await StartAsync(options);
        Uri upload = await Server.CreateAsync(3, s_one);
        Assert.Equal(status, (await Server.SendAsync(method, upload, null, s_one, ("X-HTTP-Method-Override", "DELETE"))).Status);
        Assert.Equal(status == 204 ? 404 : 200, (await Server.SendAsync("HEAD", upload, null, s_one)).Status);
    }

    [Theory]
    [InlineData("application/offset+octet-stream; charset=utf-8", 204)]
    [InlineData("Application/Offset+Octet-Stream", 204)]
    [InlineData("application/octet-stream", 415)]
    public async Task MediaType_IsComparedWithoutCaseAndParameters(string type, int status)
    {
        await StartAsync(Options());
        Uri upload = await Server.CreateAsync(3, s_one);
        await using NetworkStream connection = await Server.ConnectAsync();
        await connection.WriteAsync(Encoding.ASCII.GetBytes($"PATCH {upload.AbsolutePath} HTTP/1.1\r\nHost: a\r\nTus-Resumable: 1.0.0\r\n"
            + $"X-User: one\r\nUpload-Offset: 0\r\nContent-Type: {type}\r\nContent-Length: 3\r\n\r\nabc"), _stop);
        Assert.Contains($" {status} ", (await RawResponse.ReadAsync(connection)).Head, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Pattern_WithParameters_NeedsAnOwnerOrAFolder()
    {
        await using WebApplication app = WebApplication.CreateSlimBuilder().Build();
        ResumableUploadOptions options = new() { Folder = Folder };
        Assert.Throws<ArgumentException>(() => app.MapResumableUploads("/u/{user}/tus", options));
        app.MapGroup("/u/{user}").MapResumableUploads("/tus", options);
        Assert.Throws<InvalidOperationException>(
            () => ((Microsoft.AspNetCore.Routing.IEndpointRouteBuilder)app).DataSources.SelectMany(source => source.Endpoints).ToArray());
        Assert.Throws<ArgumentException>(() => app.MapResumableUploads("/same", new ResumableUploadOptions { Folder = Folder }));
    }

    [Fact]
    public async Task Folder_OfTwoPatterns_IsRefused_HoweverItIsWritten()
    {
        await using WebApplication app = WebApplication.CreateSlimBuilder().Build();
        ResumableUploadOptions options = new() { Folder = Folder };
        app.MapResumableUploads("/one", options);
        Assert.Throws<ArgumentException>(() => app.MapResumableUploads("/two", options));
        foreach (string folder in new[] { Folder, Folder + Path.DirectorySeparatorChar, Path.Combine(Folder, "..", "unfinished") })
        {
            Assert.Throws<ArgumentException>(() => app.MapResumableUploads("/two", new ResumableUploadOptions { Folder = folder }));
        }
    }

    [Fact]
    public async Task Folder_OfARequest_IsOne_HoweverItIsWritten()
    {
        string folder = PathOf("one");
        await StartAsync(new ResumableUploadOptions { FolderOf = _ => folder, MaxUploads = 2 });
        await Server.CreateAsync(3);
        folder += Path.DirectorySeparatorChar;
        await Server.CreateAsync(3);
        Assert.Equal(507, (await Server.PostAsync(3)).Status);
        folder = PathOf("one");
        Assert.Equal(507, (await Server.PostAsync(3)).Status);
    }

    [Fact]
    public async Task Upload_ThroughTheAddressOfAnotherFolder_IsNotThere()
    {
        string? folder = PathOf("one");
        ResumableUploadOptions options = new() { FolderOf = _ => folder };
        await StartAsync(options);
        Uri upload = await Server.CreateAsync(3);
        Assert.Equal(200, (await Server.HeadAsync(upload)).Status);
        folder = PathOf("two");
        Assert.Equal(404, (await Server.HeadAsync(upload)).Status);
        Assert.Equal(404, (await Server.PatchAsync(upload, 0, "abc"u8.ToArray())).Status);
        folder = null;
        Assert.Equal(404, (await Server.PostAsync(3)).Status);
        folder = PathOf("one");
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, "abc"u8.ToArray())).Status);
    }

    [Fact]
    public async Task Options_OfTheServices_AreCheckedAtTheStart_AndHaveNames()
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Services.AddResumableUploads(options => options.Folder = Folder);
        builder.Services.AddResumableUploads(options => options.MaxUploads = 0, "wrong");
        await using (WebApplication app = builder.Build())
        {
            app.MapResumableUploads("/uploads");
            Assert.Throws<OptionsValidationException>(() => app.MapResumableUploads("/others", "wrong"));
            await Assert.ThrowsAsync<OptionsValidationException>(() => app.StartAsync(_stop));
        }

        Assert.True(Directory.Exists(Folder));
    }

    private ResumableUploadOptions Options() => new()
    {
        Folder = Folder,
        Owner = context => context.Request.Headers["X-User"] is [{ } user] ? user : null,
    };

    private async Task StartAsync(ResumableUploadOptions options) => Server = await Resumable.TusServer.StartAsync(options);
}
