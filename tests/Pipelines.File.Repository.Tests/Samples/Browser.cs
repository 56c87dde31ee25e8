using System.Net.Http.Json;
using System.Text.Json;
using System.Text.Json.Nodes;

namespace FilePipelines.Repository.Tests;

/// <summary>A headless Chromium, driven by chromedriver over the W3C WebDriver protocol.</summary>
public sealed class Browser : IAsyncDisposable
{
    private const string ElementKey = "element-6066-11e4-a52e-4f735466cecf";

    private readonly Process _driver;
    private readonly string _profile;
    private readonly HttpClient _client = new() { Timeout = TimeSpan.FromSeconds(60) };
    private string _session = "";

    private Browser(Process driver, string profile)
    {
        _driver = driver;
        _profile = profile;
    }

    public static async Task<Browser> StartAsync(string chromeDriver, string downloads)
    {
        Process driver = Process.Start(new ProcessStartInfo(chromeDriver, ["--port=0"]) { RedirectStandardOutput = true })!;
        Browser browser = new(driver, Directory.CreateTempSubdirectory("browser-").FullName);
        try
        {
            string? line;
            while (!(line = await driver.StandardOutput.ReadLineAsync(TestContext.Current.CancellationToken)
                ?? throw new IOException("chromedriver has ended.")).Contains("started successfully on port ", StringComparison.Ordinal))
            {
            }

            browser._client.BaseAddress = new Uri(
                $"http://127.0.0.1:{line[(line.IndexOf("on port ", StringComparison.Ordinal) + 8)..].TrimEnd('.')}/session/");
            JsonNode answer = await browser.PostAsync("", new JsonObject
            {
                ["capabilities"] = new JsonObject
                {
                    ["alwaysMatch"] = new JsonObject
                    {
                        ["goog:loggingPrefs"] = new JsonObject { ["browser"] = "ALL" },
                        ["goog:chromeOptions"] = new JsonObject
                        {
                            ["prefs"] = new JsonObject { ["download.default_directory"] = downloads },
                            ["args"] = new JsonArray(
                                "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                                "--disable-background-networking", "--disable-component-update", "--disable-sync",
                                "--autoplay-policy=no-user-gesture-required", "--window-size=1000,900",
                                "--user-data-dir=" + browser._profile),
                        },
                    },
                },
            });
            browser._session = answer["sessionId"]!.GetValue<string>() + "/";
            return browser;
        }
        catch
        {
            await browser.DisposeAsync();
            throw;
        }
    }

    public Task GoToAsync(string address) => PostAsync("url", new JsonObject { ["url"] = address });

    /// <summary>What the body of a function returns, that runs in the page; what it awaits is awaited.</summary>
    public async Task<JsonNode?> RunAsync(string body)
        => await PostAsync(
            "execute/sync", new JsonObject { ["script"] = $"return (async () => {{ {body} }})();", ["args"] = new JsonArray() });

    public async Task WaitForAsync(string condition)
    {
        for (int i = 0; i < 300; i++)
        {
            if ((await RunAsync($"return Boolean({condition});"))!.GetValue<bool>())
            {
                return;
            }

            await Task.Delay(100, TestContext.Current.CancellationToken);
        }

        Assert.Fail($"Never: {condition}\n{await RunAsync("return document.documentElement.innerText;")}");
    }

    public async Task TypeAsync(string selector, string text)
        => await PostAsync($"element/{await FindAsync(selector)}/value", new JsonObject { ["text"] = text });

    public async Task ClickAsync(string selector) => await PostAsync($"element/{await FindAsync(selector)}/click", []);

    /// <summary>What the console has said since the last call.</summary>
    public async Task<IReadOnlyList<string>> ConsoleAsync()
        => [.. (await PostAsync("se/log", new JsonObject { ["type"] = "browser" })).AsArray()
            .Select(entry => $"{entry!["level"]} {entry["message"]}")];

    public async Task<byte[]> ScreenshotAsync()
    {
        JsonNode answer = (await _client.GetFromJsonAsync<JsonNode>(_session + "screenshot", TestContext.Current.CancellationToken))!;
        return Convert.FromBase64String(answer["value"]!.GetValue<string>());
    }

    public async ValueTask DisposeAsync()
    {
        if (_session.Length > 0)
        {
            using HttpResponseMessage _ = await _client.DeleteAsync(_session.TrimEnd('/'));
        }

        _driver.Kill(entireProcessTree: true);
        await _driver.WaitForExitAsync();
        _driver.Dispose();
        _client.Dispose();
        for (int i = 0; i < 50 && Directory.Exists(_profile); i++)
        {
            try
            {
                Directory.Delete(_profile, recursive: true);
            }
            catch (IOException)
            {
                // A process of the browser still writes there.
                await Task.Delay(100);
            }
        }
    }

    private async Task<string> FindAsync(string selector)
        => (await PostAsync(
            "element", new JsonObject { ["using"] = "css selector", ["value"] = selector }))[ElementKey]!.GetValue<string>();

    private async Task<JsonNode> PostAsync(string command, JsonObject parameters)
    {
        using StringContent content = new(parameters.ToJsonString(), Encoding.UTF8, "application/json");
        string target = _session.Length == 0 ? _client.BaseAddress!.AbsoluteUri.TrimEnd('/') : _session + command;
        using HttpResponseMessage response = await _client.PostAsync(target, content, TestContext.Current.CancellationToken);
        string text = await response.Content.ReadAsStringAsync(TestContext.Current.CancellationToken);
        Assert.True(response.IsSuccessStatusCode, $"{command}: {text}");
        return JsonNode.Parse(text)!["value"] ?? JsonValue.Create(JsonDocument.Parse("null").RootElement)!;
    }
}
