using System.Net.Http.Headers;
using Microsoft.AspNetCore.Antiforgery;
using Microsoft.AspNetCore.WebUtilities;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>The table of docs/events.md with the status, the counter and the log of every event: each row is made to happen.</summary>
[Collection(nameof(AloneCollection))]
public sealed class EventTableTests : InARoot
{
    private static readonly bool[] s_versions = [false, true];

    private readonly CancellationTokenSource _cancel = new();
    private readonly TaskCompletionSource _isThere = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private Func<HttpRequest, SaveBodyOptions> _options = _ => new SaveBodyOptions();

    private async Task StartAsync(bool isHttp2)
    {
        _server = await FileServer.StartAsync(
            _root,
            withPipelines: true,
            logsFrom: LogLevel.Information,
            listen: endpoint => endpoint.Protocols = isHttp2 ? HttpProtocols.Http2 : HttpProtocols.Http1,
            services: services => services.AddRequestDecompression(),
            after: app =>
            {
                app.UseRequestDecompression();
                app.MapPut("/save/{name}", async (string name, HttpContext context) =>
                {
                    _isThere.TrySetResult();
                    await context.Request.SaveBodyAsync(PathOf(Uri.UnescapeDataString(name)), _options(context.Request), _cancel.Token);
                });
                app.MapPut("/read-before", async (HttpRequest request) =>
                {
                    await request.Body.ReadExactlyAsync(new byte[1]);
                    await request.SaveBodyAsync(PathOf("f"));
                });
                app.MapPost("/forged", async (HttpContext context) =>
                {
                    context.Features.Set<IAntiforgeryValidationFeature>(new Forged());
                    await context.Request.SaveBodyAsync(PathOf("f"));
                });
                app.MapPost("/form", async (HttpRequest request) =>
                {
                    _isThere.TrySetResult();
                    await foreach (MultipartSection section in request.ReadSectionsAsync(maxSections: 2))
                    {
                        Assert.NotNull(section.Headers);
                    }
                });
            });
        _client = _server.CreateClient(isHttp2 ? HttpVersion.Version20 : HttpVersion.Version11);
        _client.DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact;
    }

    public override async ValueTask DisposeAsync()
    {
        await base.DisposeAsync();
        _cancel.Dispose();
    }

    public static TheoryData<bool, string, string, string, string> Rows()
    {
        string page = File.ReadAllText(Path.Combine(AppContext.BaseDirectory, "Documentation", "docs", "events.md"));
        TheoryData<bool, string, string, string, string> rows = [];
        foreach (string line in page.Split('\n').SkipWhile(line => !line.StartsWith("| event |", StringComparison.Ordinal)).Skip(2)
            .TakeWhile(line => line.StartsWith('|')))
        {
            string[] cells = [.. line.Trim('|').Split('|', StringSplitOptions.TrimEntries)];
            foreach (bool isHttp2 in s_versions.Where(isHttp2 => !IsOfOther(cells[0], isHttp2)))
            {
                rows.Add(isHttp2, cells[0], cells[1], cells[2].Replace("`", "", StringComparison.Ordinal),
                    cells[3].Replace("`", "", StringComparison.Ordinal));
            }
        }

        return rows;
    }

    [Theory]
    [MemberData(nameof(Rows))]
    public async Task Row_IsWhatHappens(bool isHttp2, string name, string status, string counter, string log)
    {
        await StartAsync(isHttp2);
        using Counters counters = new();
        int? answer = await MakeAsync(name);
        string[] parts = counter.Split(' ');
        await Eventually.TrueAsync(() => counters[parts[0]] == 1);
        IEnumerable<string> kinds = counters.Kinds(parts[0]).Where(kind => kind.Length > 0);
        Assert.True(kinds.SequenceEqual(parts[1..]), $"{string.Join(' ', kinds)}: {string.Join('\n', _server.Log.Lines)}");
        string[] others = ["uploads.saved", "uploads.broken", "responses.sent", "responses.broken"];
        Assert.All(others.Except([parts[0]]), other => Assert.Equal(0, counters[other]));
        Assert.Equal(status, answer?.ToString(CultureInfo.InvariantCulture) ?? "–");
        (string Event, string Text)[] logs =
        [
            ("InspectionFailed", "The inspection of an upload has failed"),
            ("SendFailed", "The connection was aborted in the middle of sending"),
            ("UploadRefused", "An upload was refused with status"),
        ];

        // An event is counted, and then logged.
        await Eventually.TrueAsync(() => logs.All(one => log.Split(", ").Contains(one.Event)
            == _server.Log.Lines.Any(line => line.StartsWith(one.Text, StringComparison.Ordinal))));
    }

    // HTTP/2 has no transfer codings (RFC 9113, 8.2.2), and HTTP/1.1 has no streams.
    private static bool IsOfOther(string name, bool isHttp2)
        => name.Contains(isHttp2 ? "Transfer-Encoding" : "HTTP/2", StringComparison.Ordinal);

    private Task<int?> MakeAsync(string name) => name switch
    {
        "an upload is saved" => PutAsync(),
        "it is longer than `MaxLength`" => PutAsync(new SaveBodyOptions { MaxLength = 1 }),
        "it is a form" => PutAsync(header: ("Content-Type", "multipart/form-data; boundary=b")),
        "it has a `Content-Encoding`" => PutAsync(header: ("Content-Encoding", "compress")),
        "it has another `Transfer-Encoding` than `chunked`" => SendRawAsync(
            "PUT /save/f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        "it is a part of a file (`Content-Range`)" => PutAsync(header: ("Content-Range", "bytes 5-9/10")),
        "`If-Match` or `If-None-Match` is malformed" => PutAsync(new SaveBodyOptions { IfMatch = "" }),
        "`If-Match` or `If-None-Match` is not met" => PutAsync(new SaveBodyOptions { IfMatch = "*" }),
        "it cannot be decompressed" => PutAsync(header: ("Content-Encoding", "gzip")),
        "it breaks off" => BreakOffAsync(HttpMethod.Put, "save/f", "application/octet-stream", 256 * 1024),
        "its HTTP/2 stream is reset" => BreakOffAsync(HttpMethod.Put, "save/f", "application/octet-stream", 256 * 1024, isReset: true),
        "its token is canceled" => CancelAsync(),
        "the file exists, and `Overwrite` is false" => PutTwiceAsync(new SaveBodyOptions { Overwrite = false }),
        "`InspectAsync` refuses it" => PutAsync(new SaveBodyOptions { InspectAsync = static (_, _) => ValueTask.FromResult(false) }),
        "`InspectAsync` throws a status of its own" => PutAsync(new SaveBodyOptions
        {
            InspectAsync = static (_, _) => throw new BadHttpRequestException("No room.", StatusCodes.Status507InsufficientStorage),
        }),
        "`InspectAsync` fails" => PutAsync(new SaveBodyOptions
        {
            InspectAsync = static (_, _) => throw new IOException("The scanner is gone."),
        }),
        "too many wait for its name" => PutBusyAsync(),
        "`BeforeReplaceAsync` throws a status of its own" => PutTwiceAsync(new SaveBodyOptions
        {
            BeforeReplaceAsync = static (_, _) => throw new BadHttpRequestException("Not now.", StatusCodes.Status409Conflict),
        }),
        "its body was read before" => PutAsync(target: "read-before"),
        "it has no valid antiforgery token" => PostAsync("forged", new StringContent("abc")),
        "the folder does not exist, the disk is full or fails" => PutAsync(target: "save/no%2Ffolder"),
        "a form is malformed" => PostFormAsync("--b\r\nno header\r\n\r\nx\r\n--b--\r\n"),
        "a form breaks off, also before its first section"
            => BreakOffAsync(HttpMethod.Post, "form", "multipart/form-data; boundary=b", 8 * 1024),
        "a form has too many sections" => TooManyAsync(),
        "a file is sent" => GetAsync(),
        "a file is left to the server" => HeadAsync(),
        "the client leaves before the end of a file" => LeaveAsync(),
        "a file is truncated while it is sent" => TruncateAsync(),
        _ => throw new InvalidOperationException($"Nobody knows how to make it happen: {name}"),
    };

    private async Task<int?> PutAsync(SaveBodyOptions? options = null, (string Name, string Value)? header = null, string target = "save/f")
    {
        _options = _ => options ?? new SaveBodyOptions();
        using ByteArrayContent content = new("abc"u8.ToArray());
        if (header is { } one)
        {
            content.Headers.TryAddWithoutValidation(one.Name, one.Value);
        }

        using HttpResponseMessage response = await _client.PutAsync(target, content, _stop);
        return (int)response.StatusCode;
    }

    private async Task<int?> PutTwiceAsync(SaveBodyOptions options)
    {
        await File.WriteAllTextAsync(PathOf("f"), "old", _stop);
        File.SetLastWriteTimeUtc(PathOf("f"), DateTime.UtcNow.AddMinutes(-1));
        return await PutAsync(options);
    }

    private async Task<int?> PutBusyAsync()
    {
        using NameLock turn = await NameLock.TakeAsync(PathOf("f"), maxWaiting: 0, _stop);
        return await PutAsync(new SaveBodyOptions { MaxWaiting = 0 });
    }

    private async Task<int?> PostAsync(string target, HttpContent content)
    {
        using HttpResponseMessage response = await _client.PostAsync(target, content, _stop);
        content.Dispose();
        return (int)response.StatusCode;
    }

    private Task<int?> PostFormAsync(string body)
    {
        ByteArrayContent content = new(Encoding.ASCII.GetBytes(body));
        content.Headers.ContentType = MediaTypeHeaderValue.Parse("multipart/form-data; boundary=b");
        return PostAsync("form", content);
    }

    private async Task<int?> TooManyAsync()
    {
        using MultipartFormDataContent form = new("b");
        for (int i = 0; i < 3; i++)
        {
            form.Add(new StringContent("a"), $"{i}");
        }

        return await PostAsync("form", form);
    }

    private async Task<int?> SendRawAsync(string request)
    {
        using Socket socket = await _server.ConnectAsync();
        await using NetworkStream stream = new(socket);
        await socket.SendAsync(Encoding.ASCII.GetBytes(request), _stop);
        return int.Parse((await RawResponse.ReadAsync(stream)).Head.Split(' ')[1], CultureInfo.InvariantCulture);
    }

    private async Task<int?> BreakOffAsync(HttpMethod method, string target, string type, int length, bool isReset = false)
    {
        using CancellationTokenSource gone = new();
        using HttpRequestMessage request = new(method, target)
        {
            Version = _client.DefaultRequestVersion,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Content = new EndlessContent(length, async () =>
            {
                await _isThere.Task.WaitAsync(Eventually.Limit, CancellationToken.None);
                if (isReset)
                {
                    await gone.CancelAsync();
                }
                else
                {
                    _client.Dispose();
                }
            }),
        };
        request.Content.Headers.TryAddWithoutValidation("Content-Type", type);
        await Assert.ThrowsAnyAsync<Exception>(() => _client.SendAsync(request, gone.Token));
        return null;
    }

    private async Task<int?> CancelAsync()
    {
        await _cancel.CancelAsync();
        return await PutAsync();
    }

    private async Task<int?> GetAsync()
    {
        await File.WriteAllTextAsync(PathOf("f"), "content", _stop);
        using HttpResponseMessage response = await _client.GetAsync("f", _stop);
        return (int)response.StatusCode;
    }

    private async Task<int?> HeadAsync()
    {
        await File.WriteAllTextAsync(PathOf("f"), "content", _stop);
        using HttpRequestMessage request = new(HttpMethod.Head, "send/f")
        {
            Version = _client.DefaultRequestVersion,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
        };
        using HttpResponseMessage response = await _client.SendAsync(request, _stop);
        return (int)response.StatusCode;
    }

    private async Task<int?> LeaveAsync()
    {
        await using Stream body = await ReadTheBeginningAsync();
        return null;
    }

    private async Task<int?> TruncateAsync()
    {
        await using Stream body = await ReadTheBeginningAsync();
        await using (FileStream file = new(PathOf("long"), FileMode.Open))
        {
            file.SetLength(100);
        }

        // The connection, or the stream, is aborted.
        await Assert.ThrowsAnyAsync<IOException>(() => body.CopyToAsync(Stream.Null, _stop));
        return null;
    }

    private async Task<Stream> ReadTheBeginningAsync()
    {
        await using (FileStream file = new(PathOf("long"), FileMode.Create))
        {
            file.SetLength(256 * 1024 * 1024);
        }

        Stream body = await _client.GetStreamAsync("long", _stop);
        await body.ReadExactlyAsync(new byte[1000], _stop);
        return body;
    }

    private sealed class Forged : IAntiforgeryValidationFeature
    {
        public bool IsValid => false;

        public Exception? Error { get; } = new AntiforgeryValidationException("No token.");
    }

    /// <summary>A body whose end never comes: when the server reads its beginning, the client goes away.</summary>
    private sealed class EndlessContent(int length, Func<Task> leaveAsync) : HttpContent
    {
        protected override async Task SerializeToStreamAsync(Stream stream, TransportContext? context, CancellationToken cancellationToken)
        {
            byte[] bytes = new byte[length];
            bytes.AsSpan().Fill((byte)'x');
            await stream.WriteAsync(bytes, cancellationToken);

            // HttpClient of .NET 11 keeps what is short, and with it the request, until more comes.
            await stream.FlushAsync(cancellationToken);
            await leaveAsync();
            await Task.Delay(Timeout.Infinite, cancellationToken);
        }

        protected override Task SerializeToStreamAsync(Stream stream, TransportContext? context)
            => SerializeToStreamAsync(stream, context, CancellationToken.None);

        protected override bool TryComputeLength(out long length)
        {
            length = 0;
            return false;
        }
    }
}
