namespace FilePipelines.AspNetCore.Tests.Abuse;

/// <summary>What is planted under a name, or beside it, before an upload takes the name.</summary>
public sealed class UploadFileNameTests : InARoot
{
    [Theory]
    [InlineData("@300000000000"), InlineData("@-60000000000")]
    public async Task Name_OfAFileWhoseTimeNobodyCanHold_IsTaken(string time)
    {
        string folder = OddTimes.NewFolder();
        try
        {
            string path = Path.Combine(folder, "a.txt");
            await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true, after: app =>
            {
                app.MapPut("/save", (HttpRequest request) => request.SaveBodyAsync(path, new SaveBodyOptions
                {
                    IfMatch = request.Headers.IfMatch,
                }));
            });
            using HttpClient client = server.CreateClient(HttpVersion.Version11);
            foreach (bool isConditional in new[] { false, true })
            {
                await File.WriteAllTextAsync(path, "old", _stop);
                OddTimes.Set(path, time);
                using HttpRequestMessage request = new(HttpMethod.Put, "save") { Content = new StringContent("new") };
                if (isConditional)
                {
                    request.Headers.TryAddWithoutValidation("If-Match", "*");
                }

                using HttpResponseMessage response = await client.SendAsync(request, _stop);
                Assert.Equal((HttpStatusCode.OK, "new"), (response.StatusCode, await File.ReadAllTextAsync(path, _stop)));
            }
        }
        finally
        {
            Directory.Delete(folder, recursive: true);
        }
    }

    [Fact]
    public async Task DurableUpload_MakesNoFileOfANameThatTheClientKnows()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Not every user of Windows may make symbolic links.");
        string victim = Path.Combine(_root, "victim");
        await File.WriteAllTextAsync(victim, "precious", _stop);
        await using Resumable.TusServer server = await Resumable.TusServer.StartAsync(new ResumableUploadOptions
        {
            Folder = Path.Combine(_root, "unfinished"),
            Durable = true,
            OnCompletedAsync = async (upload, stop) => await upload.SaveAsync(Path.Combine(_root, "saved"), cancellationToken: stop),
        });
        Uri upload = await server.CreateAsync(3);
        string planted = Path.Combine(_root, ".pipelines-file-" + upload.Segments[^1][16..]);
        File.CreateSymbolicLink(planted, victim);

        Assert.Equal(204, (await server.PatchAsync(upload, 0, "abc"u8.ToArray())).Status);

        Assert.Equal("abc", await File.ReadAllTextAsync(Path.Combine(_root, "saved"), _stop));
        Assert.Equal("precious", await File.ReadAllTextAsync(victim, _stop));
        Assert.NotNull(new FileInfo(planted).LinkTarget);
    }

    [Fact]
    public async Task Uploads_OfOneName_AreDistinctWithinASecond_IfTheirTagsAre()
    {
        SaveBodyOptions options = new() { DistinctVersions = false, EntityTag = static file => $"\"{file.LastWriteTimeUtc.Ticks:x}\"" };
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true, after: app => app.MapPut(
            "/save", async (HttpRequest request) => (await request.SaveBodyAsync(Path.Combine(_root, "camera"), options)).EntityTag));
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        string[] tags = await Task.WhenAll(Enumerable.Range(0, 20).Select(async _ =>
        {
            using HttpResponseMessage response = await client.PutAsync("save", new StringContent("picture"), _stop);
            return await response.Content.ReadAsStringAsync(_stop);
        }));
        Assert.Equal(20, tags.Distinct().Count());
        await Assert.ThrowsAsync<ArgumentException>(() => new DefaultHttpContext().Request.SaveBodyAsync(
            "x", new SaveBodyOptions { DistinctVersions = false, IfMatch = "*" }, _stop));
    }

    [Fact]
    public async Task Queue_OfAName_IsBounded()
    {
        TaskCompletionSource isReplacing = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource mayReplace = new(TaskCreationOptions.RunContinuationsAsynchronously);
        string path = Path.Combine(_root, "a");
        await File.WriteAllTextAsync(path, "old", _stop);
        SaveBodyOptions options = new()
        {
            MaxWaiting = 2,
            DistinctVersions = false,
            BeforeReplaceAsync = async (_, stop) =>
            {
                isReplacing.TrySetResult();
                await mayReplace.Task.WaitAsync(stop);
            },
        };
        await using FileServer server = await FileServer.StartAsync(_root, withPipelines: true, after: app => app.MapPut(
            "/save", (HttpRequest request) => request.SaveBodyAsync(path, options)));
        using HttpClient client = server.CreateClient(HttpVersion.Version11);
        Task<HttpStatusCode> first = PutAsync();
        await isReplacing.Task.WaitAsync(_stop);
        Task<HttpStatusCode>[] others = [PutAsync(), PutAsync(), PutAsync()];

        // One of the three came last.
        Assert.Equal(HttpStatusCode.ServiceUnavailable, await await Task.WhenAny(others));
        mayReplace.SetResult();
        Assert.Equal(HttpStatusCode.OK, await first);
        Assert.Equal(2, (await Task.WhenAll(others)).Count(status => status == HttpStatusCode.OK));

        async Task<HttpStatusCode> PutAsync()
        {
            using HttpResponseMessage response = await client.PutAsync("save", new StringContent("new"), _stop);
            return response.StatusCode;
        }
    }
}
