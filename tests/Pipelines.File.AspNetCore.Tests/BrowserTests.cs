using System.Collections.Concurrent;
using System.Text.Json.Nodes;
using FileServerSample;
using Microsoft.AspNetCore.Builder;

namespace FileSendingTests;

/// <summary>samples/FileServer as a person meets it. Runs where the environment variable CHROMEDRIVER names one; SCREENSHOT is a file for a picture of the page.</summary>
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
        Assert.Equal("saved", (await browser.RunAsync("return document.querySelector('#uploads .state').textContent;"))!.GetValue<string>());
        Assert.Contains("100 %", (await browser.RunAsync("return window.seen;"))!.AsArray().Select(state => state!.GetValue<string>()));
        Assert.Equal(content, await File.ReadAllBytesAsync(Path.Combine(root, "data #1.bin"), stop));
        await browser.WaitForAsync("document.querySelector('#files').innerText.includes('data #1.bin')");

        // The same again is refused.
        await browser.TypeAsync("#upload input", source);
        await browser.WaitForAsync("document.querySelector('#uploads li.failed')");
        Assert.Equal("there already", (await browser.RunAsync("return document.querySelector('#uploads li.failed .state').textContent;"))!.GetValue<string>());
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
        Assert.Equal((206, "345", "bytes 3-5/10"), (part["status"]!.GetValue<int>(), part["text"]!.GetValue<string>(), part["range"]!.GetValue<string>()));

        // The counters on the page, and by themselves.
        await browser.WaitForAsync("[...document.querySelectorAll('#counters div')].some(pair => pair.innerText.startsWith('uploads saved'))");
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
        await browser.WaitForAsync("document.querySelector('video').currentTime >= 1000 && !document.querySelector('video').seeking && document.querySelector('video').readyState >= 2");
        Assert.Contains(ranges, range => range.StartsWith("bytes=", StringComparison.Ordinal) && long.TryParse(range[6..].Split("-")[0], out long offset) && offset > 50_000_000);
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
