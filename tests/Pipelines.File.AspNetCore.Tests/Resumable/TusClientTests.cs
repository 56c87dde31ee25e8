namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>
/// tus-js-client under node, against a server that is killed. Runs where the environment variable TUS_CLIENT names the folder with its
/// node_modules (npm install tus-js-client).
/// </summary>
public sealed class TusClientTests : IDisposable
{
    // Sends a file as a page would; prints what it was told. The client tries every request again but the one that joins parallel parts: if
    // its connection breaks, the upload has failed (_startParallelUpload of tus-js-client 4). So a page begins again, with the parts that
    // are there.
    private const string Script = """
        const { createReadStream } = require("fs");
        const tus = require("tus-js-client");
        const [endpoint, path, name, chunk, parallel] = process.argv.slice(1);
        let begun = 0;
        const upload = new tus.Upload(createReadStream(path, { highWaterMark: 65536 }), {
          endpoint,
          chunkSize: Number(chunk) || Infinity,
          parallelUploads: Number(parallel),
          retryDelays: Array(1000).fill(50),
          metadata: parallel > 1 ? { filename: name, overwrite: "" } : { filename: name },
          onShouldRetry: () => true,
          onError: error => {
            if (parallel > 1 && ++begun < 100) {
              setTimeout(() => upload.start(), 50);
            } else {
              console.error(String(error));
              process.exit(1);
            }
          },
          onSuccess: () => { console.log("done"); process.exit(0); },
        });
        upload.start();
        """;

    private readonly string _root = Directory.CreateTempSubdirectory("resumable-").FullName;
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private Process? _server;

    public void Dispose()
    {
        _server?.Kill();
        _server?.WaitForExit();
        _server?.Dispose();
        Directory.Delete(_root, recursive: true);
    }

    [Theory]
    [Trait("Category", "Long")]
    [InlineData(0, 1), InlineData(1_000_000, 1), InlineData(0, 3)]
    public async Task TusJsClient_WithAServerThatIsKilled_SendsTheWholeFile(int chunk, int parallel)
    {
        string? client = Environment.GetEnvironmentVariable("TUS_CLIENT");
        Assert.SkipWhen(string.IsNullOrEmpty(client), "TUS_CLIENT names no folder with tus-js-client.");
        byte[] content = FileTree.Content(40_000_000);
        string source = Path.Combine(_root, "source");
        await File.WriteAllBytesAsync(source, content, _stop);
        int port = 0;
        _server = TusChild.Start(_root, ref port);
        using Process node = Process.Start(new ProcessStartInfo("node")
        {
            ArgumentList =
            {
                "-e", Script, $"http://127.0.0.1:{port}/uploads", source, "name", chunk.ToString(CultureInfo.InvariantCulture),
                parallel.ToString(CultureInfo.InvariantCulture),
            },
            WorkingDirectory = client,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        })!;
        Task<string> output = node.StandardOutput.ReadToEndAsync(_stop);
        Task<string> errors = node.StandardError.ReadToEndAsync(_stop);
        Task ended = node.WaitForExitAsync(_stop);

        // Killed while bytes come, as often as that happens before the client is done.
        for (int i = 0; i < 4 && !ended.IsCompleted; i++)
        {
            await Task.WhenAny(ended, Task.Delay(Random.Shared.Next(20, 400), _stop));
            if (!ended.IsCompleted)
            {
                _server.Kill();
                await _server.WaitForExitAsync(_stop);
                _server.Dispose();
                _server = TusChild.Start(_root, ref port);
            }
        }

        try
        {
            await ended.WaitAsync(Eventually.Limit * 3, _stop);
        }
        catch (TimeoutException)
        {
            node.Kill();
            throw;
        }

        Assert.Equal(("done\n", ""), (await output, await errors));
        Assert.Equal(content, await File.ReadAllBytesAsync(Path.Combine(TusChild.SavedOf(_root), "name"), _stop));
    }
}
