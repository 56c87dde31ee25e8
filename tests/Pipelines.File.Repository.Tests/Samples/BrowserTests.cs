using System.Collections.Concurrent;
using System.Text.Json;
using System.Text.Json.Nodes;
using FileServerSample;
using Microsoft.AspNetCore.Builder;

namespace FilePipelines.Repository.Tests;

/// <summary>
/// samples/FileServer as a person meets it. Runs where the environment variable CHROMEDRIVER names one; SCREENSHOT is a file for a picture
/// of the page.
/// </summary>
public sealed class BrowserTests : IDisposable
{
    private readonly DirectoryInfo _folder = Directory.CreateTempSubdirectory("file-server-");

    public void Dispose() => _folder.Delete(recursive: true);

    [Fact]
    public async Task FileServer_InChromium_UploadsDownloadsSeeksAndCounts()
    {
        CancellationToken stop = TestContext.Current.CancellationToken;
        string? chromeDriver = Environment.GetEnvironmentVariable("CHROMEDRIVER");
        Assert.SkipWhen(string.IsNullOrEmpty(chromeDriver), "CHROMEDRIVER names no chromedriver.");
        string root = _folder.CreateSubdirectory("root").FullName;
        string downloads = _folder.CreateSubdirectory("downloads").FullName;
        Directory.CreateDirectory(Path.Combine(root, "holiday photos"));
        await File.WriteAllTextAsync(Path.Combine(root, "readme.txt"), "0123456789", stop);
        AddSilence(Path.Combine(root, "silence.wav"), seconds: 1200);
        byte[] content = FileTree.Content(20_000_000);
        string source = Path.Combine(_folder.FullName, "data #1.bin");
        await File.WriteAllBytesAsync(source, content, stop);

        ConcurrentQueue<string> ranges = [];
        await using WebApplication app = FileServerApplication.Build(new Settings(root, Port: 0));
        app.Use((context, next) =>
        {
            if (context.Request.Path.Value!.EndsWith(".wav", StringComparison.Ordinal))
            {
                ranges.Enqueue(context.Request.Headers.Range.ToString());
            }

            return next(context);
        });
        await app.StartAsync(stop);
        string address = app.Urls.Single();
        await using Browser browser = await Browser.StartAsync(chromeDriver!, downloads);
        await browser.GoToAsync(address + "/");
        Assert.Equal(address + "/files/", (await browser.RunAsync("return location.href;"))!.GetValue<string>());

        // Uploads, with progress.
        await browser.RunAsync("""
            window.seen = [];
            new MutationObserver(() => document.querySelectorAll("#uploads .state").forEach(state => window.seen.push(state.textContent))).observe(document.getElementById("uploads"), { childList: true, subtree: true, characterData: true });
            """);
        await browser.TypeAsync("#upload input", source);
        await browser.WaitForAsync("document.querySelector('#uploads li.done, #uploads li.failed')");
        Assert.Equal("saved",
            (await browser.RunAsync("return document.querySelector('#uploads .state').textContent;"))!.GetValue<string>());
        Assert.Contains("100 %", (await browser.RunAsync("return window.seen;"))!.AsArray().Select(state => state!.GetValue<string>()));
        Assert.Equal(content, await File.ReadAllBytesAsync(Path.Combine(root, "data #1.bin"), stop));
        await browser.WaitForAsync("document.querySelector('#files').innerText.includes('data #1.bin')");

        // The same again is refused.
        await browser.TypeAsync("#upload input", source);
        await browser.WaitForAsync("document.querySelector('#uploads li.failed')");
        Assert.Equal("there already",
            (await browser.RunAsync("return document.querySelector('#uploads li.failed .state').textContent;"))!.GetValue<string>());
        if (Environment.GetEnvironmentVariable("SCREENSHOT") is { Length: > 0 } screenshot)
        {
            await File.WriteAllBytesAsync(screenshot, await browser.ScreenshotAsync(), stop);
        }

        // Downloads.
        await browser.ClickAsync("a[href='data%20%231.bin']");
        string downloaded = Path.Combine(downloads, "data #1.bin");
        for (int i = 0; i < 200 && !File.Exists(downloaded); i++)
        {
            await Task.Delay(100, stop);
        }

        Assert.Equal(content, await File.ReadAllBytesAsync(downloaded, stop));

        // Ranges, asked for by a script.
        JsonNode part = (await browser.RunAsync("""
            const response = await fetch("readme.txt", { headers: { Range: "bytes=3-5" } });
            return { status: response.status, text: await response.text(), range: response.headers.get("Content-Range") };
            """))!;
        Assert.Equal((206, "345", "bytes 3-5/10"),
            (part["status"]!.GetValue<int>(), part["text"]!.GetValue<string>(), part["range"]!.GetValue<string>()));

        // The counters on the page, and by themselves.
        await browser.WaitForAsync(
            "[...document.querySelectorAll('#counters div')].some(pair => pair.innerText.startsWith('uploads saved'))");
        Assert.DoesNotContain(await browser.ConsoleAsync(), line => line.StartsWith("SEVERE", StringComparison.Ordinal));
        await browser.GoToAsync(address + "/metrics");
        string metrics = (await browser.RunAsync("return document.body.innerText;"))!.GetValue<string>();
        Assert.Matches("(?m)^pipelines_file_uploads_saved_total [1-9]", metrics);
        Assert.Matches("(?m)^pipelines_file_responses_sent_total [1-9]", metrics);

        // Seeking: the browser's own player, far behind what it has loaded.
        await browser.GoToAsync(address + "/files/silence.wav");
        await browser.WaitForAsync("document.querySelector('video').readyState >= 2");
        Assert.Equal(1200, (await browser.RunAsync("return document.querySelector('video').duration;"))!.GetValue<double>(), tolerance: 1);
        await browser.RunAsync("document.querySelector('video').currentTime = 1000;");
        await browser.WaitForAsync("document.querySelector('video').currentTime >= 1000 && !document.querySelector('video').seeking && "
            + "document.querySelector('video').readyState >= 2");
        Assert.Contains(ranges, range => range.StartsWith("bytes=", StringComparison.Ordinal)
            && long.TryParse(range[6..].Split("-")[0], out long offset) && offset > 50_000_000);
    }

    [Fact]
    public async Task FileServer_InChromium_HoldsWhatGoesWrong()
    {
        CancellationToken stop = TestContext.Current.CancellationToken;
        string? chromeDriver = Environment.GetEnvironmentVariable("CHROMEDRIVER");
        Assert.SkipWhen(string.IsNullOrEmpty(chromeDriver), "CHROMEDRIVER names no chromedriver.");
        string root = _folder.CreateSubdirectory("root").FullName;
        DirectoryInfo many = Directory.CreateDirectory(Path.Combine(root, "many"));
        for (int i = 0; i < 5000; i++)
        {
            await File.WriteAllBytesAsync(Path.Combine(many.FullName, $"{i:d4}.txt"), [1], stop);
        }

        ConcurrentQueue<string> requests = [];
        TaskCompletionSource goesOn = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using WebApplication app = FileServerApplication.Build(new Settings(root, Port: 0));
        app.Use(async (context, next) =>
        {
            string path = context.Request.Path.Value!;
            if (path.StartsWith("/files/", StringComparison.Ordinal))
            {
                requests.Enqueue(context.Request.Method);
            }

            if (path.Contains("slow", StringComparison.Ordinal))
            {
                await goesOn.Task.WaitAsync(context.RequestAborted);
            }

            await next(context);
        });
        await app.StartAsync(stop);
        string address = app.Urls.Single();
        await using Browser browser = await Browser.StartAsync(chromeDriver!, _folder.CreateSubdirectory("downloads").FullName);

        // 5,000 names, in parts; 30 files that are dropped beside the box are 30 requests, and one for a part of the names.
        await browser.GoToAsync(address + "/files/many/");
        Assert.Equal(FolderPage.PageSize,
            (await browser.RunAsync("return document.querySelectorAll('#files td a').length;"))!.GetValue<int>());
        requests.Clear();
        Assert.True((await DropAsync([.. Enumerable.Range(0, 30).Select(i => $"new {i}.txt")])).GetValue<bool>());
        await browser.WaitForAsync("document.querySelectorAll('#uploads li.done').length === 30");
        await browser.WaitForAsync("document.querySelector('#files').innerText.includes('of 26')");
        Assert.Equal((30, 1, 31), (requests.Count(method => method == "PUT"), requests.Count(method => method == "GET"), requests.Count));
        await browser.ClickAsync("#files .pages a");
        await browser.WaitForAsync("document.querySelector('#files').innerText.includes('2 of 26')");

        // Names that a script and .NET encode in two ways; what is there already, and what is never taken, is not sent.
        await browser.GoToAsync(address + "/files/");
        await SavedAsync("a (1)! 'b' *.txt");
        requests.Clear();
        Assert.Equal("there already", await StateOfAsync("a (1)! 'b' *.txt"));
        Assert.Equal("names that begin with a dot are not taken", await StateOfAsync(".hidden"));
        Assert.DoesNotContain("PUT", requests);

        // Canceled while the server takes its time, and leaving meanwhile is asked about.
        Assert.False(await AsksBeforeLeavingAsync());
        await browser.RunAsync("document.querySelectorAll('#uploads li').forEach(item => item.remove());");
        await DropAsync("slow.txt", "later.txt", "never.txt");
        await browser.WaitForAsync("document.querySelectorAll('#uploads button').length === 3");
        Assert.True(await AsksBeforeLeavingAsync());
        await browser.RunAsync(
            "document.querySelectorAll('#uploads button')[2].click(); document.querySelectorAll('#uploads button')[0].click();");
        await browser.WaitForAsync(
            "document.querySelectorAll('#uploads li.failed').length === 2 && document.querySelectorAll('#uploads li.done').length === 1");
        Assert.Equal("canceled,saved,canceled", (await browser.RunAsync("return [...document.querySelectorAll('#uploads "
            + ".state')].map(state => state.textContent).join();"))!.GetValue<string>());
        Assert.False(await AsksBeforeLeavingAsync());
        Assert.False(File.Exists(Path.Combine(root, "slow.txt")));
        Assert.True(File.Exists(Path.Combine(root, "later.txt")));

        // A folder that is gone, and a server that is.
        Directory.CreateDirectory(Path.Combine(root, "short"));
        await browser.GoToAsync(address + "/files/short/");
        Directory.Delete(Path.Combine(root, "short"));
        Assert.Equal("this folder is not there any more", await StateOfAsync("f.txt"));
        await browser.WaitForAsync("document.querySelector('#message').textContent === 'This folder is not there any more.'");
        await app.StopAsync(stop);
        Assert.Equal("the server does not answer", await StateOfAsync("g.txt"));
        await browser.WaitForAsync("document.querySelector('#message').textContent === 'The server does not answer.'");
        Assert.DoesNotContain(await browser.ConsoleAsync(),
            line => line.Contains("Uncaught", StringComparison.Ordinal) || line.Contains("null", StringComparison.Ordinal));

        async Task<JsonNode> DropAsync(params string[] names) => (await browser.RunAsync($$"""
            const data = new DataTransfer();
            {{JsonSerializer.Serialize(names)}}.forEach(name => data.items.add(new File(["content"], name)));
            const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
            document.body.dispatchEvent(drop);
            return drop.defaultPrevented;
            """))!;

        async Task<string> StateOfAsync(string name)
        {
            await browser.RunAsync("document.querySelectorAll('#uploads li').forEach(item => item.remove());");
            await DropAsync(name);
            await browser.WaitForAsync("document.querySelector('#uploads li.done, #uploads li.failed')");
            return (await browser.RunAsync("return document.querySelector('#uploads .state').textContent;"))!.GetValue<string>();
        }

        async Task SavedAsync(string name)
        {
            Assert.Equal("saved", await StateOfAsync(name));
            Assert.True(File.Exists(Path.Combine(root, name)));
            await browser.WaitForAsync($"document.querySelector('#files').innerText.includes({JsonSerializer.Serialize(name)})");
        }

        async Task<bool> AsksBeforeLeavingAsync()
            => (await browser.RunAsync("const leaving = new Event('beforeunload', { cancelable: true }); dispatchEvent(leaving); "
                + "return leaving.defaultPrevented;"))!.GetValue<bool>();
    }

    [Fact]
    public async Task FileServer_InChromium_PausesAndGoesOn_AlsoAfterAReload()
    {
        CancellationToken stop = TestContext.Current.CancellationToken;
        string? chromeDriver = Environment.GetEnvironmentVariable("CHROMEDRIVER");
        Assert.SkipWhen(string.IsNullOrEmpty(chromeDriver), "CHROMEDRIVER names no chromedriver.");
        string root = _folder.CreateSubdirectory("root").FullName;
        byte[] content = FileTree.Content(30_000_000);
        string source = Path.Combine(_folder.FullName, "film (1).bin");
        await File.WriteAllBytesAsync(source, content, stop);

        // The server takes as much of all bodies as the test lets it.
        HeldBody.Gate gate = new();
        ConcurrentQueue<long> offsets = [];
        await using WebApplication app = FileServerApplication.Build(new Settings(root, Port: 0));
        app.Use((context, next) =>
        {
            if (context.Request.Method == "PATCH")
            {
                offsets.Enqueue(long.Parse(context.Request.Headers["Upload-Offset"]!, CultureInfo.InvariantCulture));
                context.Request.Body = new HeldBody(context.Request.Body, gate);
            }

            return next(context);
        });
        await app.StartAsync(stop);
        string page = app.Urls.Single() + "/files/";
        await using Browser browser = await Browser.StartAsync(chromeDriver!, _folder.CreateSubdirectory("downloads").FullName);
        await browser.GoToAsync(page);

        // Paused, and resumed: it goes on where it was.
        gate.Let(5_000_000);
        await browser.TypeAsync("#upload input", source);
        await gate.IsReachedAsync(stop);
        await browser.RunAsync("document.querySelector('#uploads button').click();");
        Assert.Equal("paused", await StateAsync());
        gate.Break();
        gate.Let(6_000_000);
        await browser.RunAsync("document.querySelector('#uploads button').click();");
        await gate.IsReachedAsync(stop);
        Assert.Equal((0, 5_000_000), (offsets.First(), offsets.Last()));

        // Left in the middle, and chosen again.
        await browser.RunAsync("document.querySelector('#uploads button').click();");
        gate.Break();
        await browser.GoToAsync(page);
        Assert.Equal("unfinished: choose the file again", await StateAsync());
        Assert.Equal("film (1).bin",
            (await browser.RunAsync("return document.querySelector('#uploads .name').textContent;"))!.GetValue<string>());
        gate.Let(long.MaxValue);
        await browser.TypeAsync("#upload input", source);
        await browser.WaitForAsync("document.querySelector('#uploads li.done, #uploads li.failed')");
        Assert.Equal("saved", await StateAsync());
        Assert.Equal(1, (await browser.RunAsync("return document.querySelectorAll('#uploads li').length;"))!.GetValue<int>());
        Assert.Equal(11_000_000, offsets.Last());
        Assert.Equal(content, await File.ReadAllBytesAsync(Path.Combine(root, "film (1).bin"), stop));

        // It is remembered no longer.
        await browser.GoToAsync(page);
        Assert.Equal(0, (await browser.RunAsync("return document.querySelectorAll('#uploads li').length + localStorage.length;"))!
            .GetValue<int>());

        // Canceled: nothing of it stays.
        File.Delete(Path.Combine(root, "film (1).bin"));
        await browser.GoToAsync(page);
        gate.Let(0);
        await browser.TypeAsync("#upload input", source);
        await gate.IsReachedAsync(stop);
        await browser.RunAsync("document.querySelectorAll('#uploads button')[1].click();");
        Assert.Equal("canceled", await StateAsync());
        gate.Break();
        await Eventually.TrueAsync(() => !Directory.EnumerateFiles(Path.Combine(root, ".uploads"), "*.part").Any());
        Assert.DoesNotContain(await browser.ConsoleAsync(), line => line.Contains("Uncaught", StringComparison.Ordinal));

        async Task<string> StateAsync()
            => (await browser.RunAsync("return document.querySelector('#uploads .state').textContent;"))!.GetValue<string>();
    }

    /// <summary>A WAV file of silence, 16 bits, 44,100 times a second: RIFF, fmt and data.</summary>
    private static void AddSilence(string path, int seconds)
    {
        const int Rate = 44_100;
        int length = seconds * Rate * 2;
        using FileStream file = File.Create(path);
        using BinaryWriter writer = new(file);
        writer.Write("RIFF"u8);
        writer.Write(36 + length);
        writer.Write("WAVEfmt "u8);
        writer.Write(16);
        writer.Write((short)1);
        writer.Write((short)1);
        writer.Write(Rate);
        writer.Write(Rate * 2);
        writer.Write((short)2);
        writer.Write((short)16);
        writer.Write("data"u8);
        writer.Write(length);
        writer.Flush();
        file.SetLength(44 + length);
    }
}
