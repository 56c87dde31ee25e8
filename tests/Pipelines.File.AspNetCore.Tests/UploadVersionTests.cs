namespace FilePipelines.AspNetCore.Tests;

/// <summary>The versions of a file that uploads replace: their times, their entity tags, and who replaces which.</summary>
public sealed class UploadVersionTests : InARoot
{
    private SaveBodyOptions _options = new();

    public override async ValueTask InitializeAsync()
    {
        Directory.CreateDirectory(PathOf("folder"));
        _server = await FileServer.StartAsync(_root, withPipelines: true, after: app =>
            app.MapPut("/save/{**name}", async (string name, HttpContext context) =>
            {
                SaveBodyOptions options = new()
                {
                    IfMatch = context.Request.Headers.IfMatch,
                    EntityTag = _options.EntityTag,
                    BeforeReplaceAsync = _options.BeforeReplaceAsync,
                    Hash = _options.Hash,
                    Durable = _options.Durable,
                };
                SavedFile saved = await context.Request.SaveBodyAsync(PathOf(name), options);
                context.Response.Headers.ETag = saved.EntityTag;
                context.Response.StatusCode = saved.Replaced ? StatusCodes.Status204NoContent : StatusCodes.Status201Created;
            }));
        _client = _server.CreateClient(HttpVersion.Version11);
    }

    [Theory]
    [InlineData(false, false), InlineData(true, false), InlineData(false, true)]
    public async Task SaveBodyAsync_VersionsWithinASecond_HaveTagsAndTimesOfTheirOwn(bool isConditional, bool isDurable)
    {
        _options = new SaveBodyOptions { Durable = isDurable };
        List<string> tags = [];
        DateTime last = DateTime.MinValue;
        foreach (string content in new[] { "first", "four", "third" })
        {
            (HttpStatusCode status, string? tag) = await PutAsync("f.txt", content, isConditional && tags.Count > 0 ? tags[^1] : null);
            Assert.Equal(tags.Count == 0 ? HttpStatusCode.Created : HttpStatusCode.NoContent, status);
            using HttpResponseMessage response = await _client.GetAsync("f.txt", _stop);
            Assert.Equal(tag, response.Headers.ETag!.ToString());
            Assert.DoesNotContain(tag, tags);
            tags.Add(tag!);

            // RFC 9110, 8.8.2.1: not ahead of the clock.
            DateTime modified = response.Content.Headers.LastModified!.Value.UtcDateTime;
            Assert.InRange(modified, last.AddTicks(1), DateTime.UtcNow);
            last = modified;
        }

        // A third client that saw only the first version.
        Assert.Equal(HttpStatusCode.PreconditionFailed, (await PutAsync("f.txt", "other", tags[0])).Status);
        Assert.Equal("third", await File.ReadAllTextAsync(PathOf("f.txt"), _stop));
    }

    [Fact]
    public async Task SaveBodyAsync_OldFileIsAheadOfTheClock_TheNewOneIsNot()
    {
        await File.WriteAllTextAsync(PathOf("f.txt"), "old", _stop);
        File.SetLastWriteTimeUtc(PathOf("f.txt"), DateTime.UtcNow.AddYears(1));
        Assert.Equal(HttpStatusCode.NoContent, (await PutAsync("f.txt", "new")).Status);
        Assert.InRange(File.GetLastWriteTimeUtc(PathOf("f.txt")), DateTime.UtcNow.AddHours(-1), DateTime.UtcNow);
    }

    [Fact]
    public async Task SaveBodyAsync_TwoNamesOfOneFolder_OneOfTheSameTagWins()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Symbolic links.");
        Directory.CreateSymbolicLink(PathOf("link"), PathOf("folder"));
        for (int round = 0; round < 20; round++)
        {
            string name = $"{round}.txt";
            await PutAsync("folder/" + name, "old");
            string tag = await OldTagAsync("folder/" + name);
            HttpStatusCode[] answers = await Task.WhenAll(Enumerable.Range(0, 8).Select(
                async i => (await PutAsync((i % 2 == 0 ? "folder/" : "link/") + name, $"new{i}", tag)).Status));
            Assert.Single(answers, HttpStatusCode.NoContent);
            Assert.Equal(7, answers.Count(answer => answer == HttpStatusCode.PreconditionFailed));
        }
    }

    [Fact]
    public async Task SaveBodyAsync_BeforeReplace_SeesWhatTheWinnerReplaces()
    {
        int underWay = 0;
        _options = new SaveBodyOptions
        {
            BeforeReplaceAsync = async (old, stop) =>
            {
                Assert.Equal(1, Interlocked.Increment(ref underWay));
                old.CopyTo(PathOf("backup.txt"), overwrite: true);
                await Task.Yield();
                Interlocked.Decrement(ref underWay);
            },
        };
        (_, string? tag) = await PutAsync("f.txt", "old");
        Assert.False(File.Exists(PathOf("backup.txt")));
        HttpStatusCode[] answers = await Task.WhenAll(Enumerable.Range(0, 8).Select(
            async i => (await PutAsync("f.txt", $"new{i}", tag)).Status));
        Assert.Single(answers, HttpStatusCode.NoContent);
        Assert.Equal("old", await File.ReadAllTextAsync(PathOf("backup.txt"), _stop));

        // If it throws, the old file stays.
        string latest = await File.ReadAllTextAsync(PathOf("f.txt"), _stop);
        _options = new SaveBodyOptions { BeforeReplaceAsync = (_, _) => throw new IOException("No room for the backup.") };
        Assert.Equal(HttpStatusCode.InternalServerError, (await PutAsync("f.txt", "other")).Status);
        Assert.Equal(latest, await File.ReadAllTextAsync(PathOf("f.txt"), _stop));
    }

    [Fact]
    public async Task SaveBodyAsync_TagOfTheOptions_IsTheAnswer()
    {
        _options = new SaveBodyOptions { EntityTag = static file => $"\"{file.Length}\"" };
        Assert.Equal("\"5\"", (await PutAsync("f.txt", "12345")).Tag);
        Assert.Equal((HttpStatusCode.NoContent, "\"2\""), await PutAsync("f.txt", "12", "\"5\""));
        _options = new SaveBodyOptions { EntityTag = static _ => throw new FileNotFoundException() };
        Assert.Equal((HttpStatusCode.NoContent, null), await PutAsync("f.txt", "123"));
    }

    [Fact]
    public async Task SaveBodyAsync_OneOfManyForANameIsCanceled_TheOthersTakeTheirTurns()
    {
        TaskCompletionSource isIn = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource mayGo = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await File.WriteAllTextAsync(PathOf("f.txt"), "old", _stop);
        Task<SavedFile> first = Save("first", new SaveBodyOptions
        {
            BeforeReplaceAsync = async (_, _) =>
            {
                isIn.SetResult();
                await mayGo.Task;
            },
        }, _stop);
        await isIn.Task.WaitAsync(Eventually.Limit, _stop);
        using CancellationTokenSource cancel = new();
        Task<SavedFile> second = Save("second", new SaveBodyOptions(), cancel.Token);
        Task<SavedFile> third = Save("third", new SaveBodyOptions(), _stop);
        await cancel.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => second);
        Assert.False(third.IsCompleted);
        mayGo.SetResult();
        Assert.True((await first).Replaced);
        Assert.True((await third).Replaced);
        Assert.Equal("third", await File.ReadAllTextAsync(PathOf("f.txt"), _stop));
        Assert.Single(new DirectoryInfo(_root).GetFiles());

        Task<SavedFile> Save(string content, SaveBodyOptions options, CancellationToken stop)
        {
            DefaultHttpContext context = new();
            context.Request.Body = new MemoryStream(Encoding.ASCII.GetBytes(content));
            return context.Request.SaveBodyAsync(PathOf("f.txt"), options, stop);
        }
    }

    private async Task<(HttpStatusCode Status, string? Tag)> PutAsync(string name, string content, string? ifMatch = null)
    {
        using HttpRequestMessage request = new(HttpMethod.Put, "save/" + name) { Content = new StringContent(content) };
        if (ifMatch is not null)
        {
            request.Headers.TryAddWithoutValidation("If-Match", ifMatch);
        }

        using HttpResponseMessage response = await _client.SendAsync(request, _stop);
        return (response.StatusCode, response.Headers.ETag?.ToString());
    }

    /// <summary>Makes the file older than this second, so that its next version need not wait, and returns its tag.</summary>
    private async Task<string> OldTagAsync(string name)
    {
        File.SetLastWriteTimeUtc(PathOf(name), DateTime.UtcNow.AddMinutes(-1));
        using HttpResponseMessage response = await _client.GetAsync(name, _stop);
        return response.Headers.ETag!.ToString();
    }
}
