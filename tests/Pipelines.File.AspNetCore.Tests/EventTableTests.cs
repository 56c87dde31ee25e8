using System.Globalization;
using System.Net;
using System.Net.Http.Headers;
using System.Net.Sockets;
using System.Text;
using Microsoft.AspNetCore.Antiforgery;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.WebUtilities;
using Microsoft.Extensions.DependencyInjection;
using Pipelines.File.AspNetCore;
using BadHttpRequestException = Microsoft.AspNetCore.Http.BadHttpRequestException;

namespace FileSendingTests;

/// <summary>The table of docs/serving.md with the status, the counter and the log of every event: each row is made to happen.</summary>
[Collection(nameof(AloneCollection))]
public sealed class EventTableTests : IAsyncLifetime
{
    private readonly string _root = Directory.CreateTempSubdirectory("file-sending-").FullName;
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private readonly CancellationTokenSource _cancel = new();
    private Func<HttpRequest, SaveBodyOptions> _options = _ => new SaveBodyOptions();
    private FileServer _server = null!;
    private HttpClient _client = null!;

    public async ValueTask InitializeAsync()
    {
        _server = await FileServer.StartAsync(
            _root,
            withPipelines: true,
            services: services => services.AddRequestDecompression(),
            after: app =>
            {
                app.UseRequestDecompression();
                app.MapPut("/save/{name}", async (string name, HttpContext context) =>
                    await context.Request.SaveBodyAsync(PathOf(name), _options(context.Request), _cancel.Token));
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
                    await foreach (MultipartSection section in request.ReadSectionsAsync(maxSections: 2))
                    {
                        Assert.NotNull(section.Headers);
                    }
                });
            });
        _client = _server.CreateClient(HttpVersion.Version11);
    }

    public async ValueTask DisposeAsync()
    {
        _client.Dispose();
        await _server.DisposeAsync();
        _cancel.Dispose();
        Directory.Delete(_root, recursive: true);
    }

    public static TheoryData<string, string, string, string> Rows()
    {
        string page = File.ReadAllText(Path.Combine(AppContext.BaseDirectory, "Documentation", "docs", "serving.md"));
        TheoryData<string, string, string, string> rows = [];
        foreach (string line in page.Split('\n').SkipWhile(line => !line.StartsWith("| event |", StringComparison.Ordinal)).Skip(2)
            .TakeWhile(line => line.StartsWith('|')))
        {
            string[] cells = [.. line.Trim('|').Split('|', StringSplitOptions.TrimEntries)];
            rows.Add(cells[0], cells[1], cells[2].Replace("`", "", StringComparison.Ordinal),
                cells[3].Replace("`", "", StringComparison.Ordinal));
        }

        return rows;
    }

    [Theory]
    [MemberData(nameof(Rows))]
    public async Task Row_IsWhatHappens(string name, string status, string counter, string log)
    {
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
        ];
        Assert.All(logs, one => Assert.Equal(
            log == one.Event, _server.Log.Lines.Any(line => line.StartsWith(one.Text, StringComparison.Ordinal))));
    }

    private Task<int?> MakeAsync(string name) => name switch
    {
        "an upload is saved" => PutAsync(),
        "it is longer than `MaxLength`" => PutAsync(new SaveBodyOptions { MaxLength = 1 }),
        "it is a form" => PutAsync(header: ("Content-Type", "multipart/form-data; boundary=b")),
        "it has a `Content-Encoding`" => PutAsync(header: ("Content-Encoding", "zstd")),
        "it has another `Transfer-Encoding` than `chunked`" => SendRawAsync(
            "PUT /save/f HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        "it is a part of a file (`Content-Range`)" => PutAsync(header: ("Content-Range", "bytes 5-9/10")),
        "`If-Match` or `If-None-Match` is malformed" => PutAsync(new SaveBodyOptions { IfMatch = "" }),
        "`If-Match` or `If-None-Match` is not met" => PutAsync(new SaveBodyOptions { IfMatch = "*" }),
        "it cannot be decompressed" => PutAsync(header: ("Content-Encoding", "gzip")),
        "it breaks off" => BreakOffAsync("PUT /save/f HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc"),
        "its HTTP/2 stream is reset" => ResetAsync(),
        "its token is canceled" => CancelAsync(),
        "the file exists, and `Overwrite` is false" => PutTwiceAsync(new SaveBodyOptions { Overwrite = false }),
        "`Inspect` refuses it" => PutAsync(new SaveBodyOptions { Inspect = static (_, _) => ValueTask.FromResult(false) }),
        "`Inspect` throws a status of its own" => PutAsync(new SaveBodyOptions
        {
            Inspect = static (_, _) => throw new BadHttpRequestException("No room.", StatusCodes.Status507InsufficientStorage),
        }),
        "`Inspect` fails" => PutAsync(new SaveBodyOptions { Inspect = static (_, _) => throw new IOException("The scanner is gone.") }),
        "`BeforeReplace` throws a status of its own" => PutTwiceAsync(new SaveBodyOptions
        {
            BeforeReplace = static (_, _) => throw new BadHttpRequestException("Not now.", StatusCodes.Status409Conflict),
        }),
        "its body was read before" => PutAsync(target: "read-before"),
        "it has no valid antiforgery token" => PostAsync("forged", new StringContent("abc")),
        "the folder does not exist, the disk is full or fails" => PutAsync(target: "save/no%2Ffolder"),
        "a form is malformed" => PostFormAsync("--b\r\nno header\r\n\r\nx\r\n--b--\r\n"),
        "a form breaks off, also before its first section" => BreakOffAsync("POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n"
            + "Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\nContent-Disp"),
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

    private async Task<int?> BreakOffAsync(string request)
    {
        using Socket socket = await _server.ConnectAsync();
        await socket.SendAsync(Encoding.ASCII.GetBytes(request), _stop);
        return null;
    }

    private async Task<int?> ResetAsync()
    {
        // It lives until the end, as its counters do.
        TaskCompletionSource isThere = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await _server.DisposeAsync();
        _server = await FileServer.StartAsync(
            _root, withPipelines: true, listen: endpoint => endpoint.Protocols = HttpProtocols.Http2,
            after: app => app.MapPut("/save", (HttpRequest request) =>
            {
                isThere.SetResult();
                return request.SaveBodyAsync(PathOf("f"));
            }));
        using HttpClient client = _server.CreateClient(HttpVersion.Version20);
        using CancellationTokenSource gone = new();
        using HttpRequestMessage request = new(HttpMethod.Put, "save")
        {
            Version = HttpVersion.Version20,
            VersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Content = new StreamContent(new EndlessStream(isThere.Task, gone)),
        };
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => client.SendAsync(request, gone.Token));
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
        using HttpRequestMessage request = new(HttpMethod.Head, "send/f");
        using HttpResponseMessage response = await _client.SendAsync(request, _stop);
        return (int)response.StatusCode;
    }

    private async Task<int?> LeaveAsync()
    {
        await ReadTheBeginningAsync();
        return null;
    }

    private async Task<int?> TruncateAsync()
    {
        using Socket socket = await ReadTheBeginningAsync(stays: true);
        await using (FileStream file = new(PathOf("long"), FileMode.Open))
        {
            file.SetLength(100);
        }

        await using NetworkStream stream = new(socket);
        byte[] buffer = new byte[64 * 1024];
        try
        {
            while (await stream.ReadAsync(buffer, _stop) > 0)
            {
            }
        }
        catch (IOException)
        {
            // The connection was aborted.
        }

        return null;
    }

    private async Task<Socket> ReadTheBeginningAsync(bool stays = false)
    {
        await using (FileStream file = new(PathOf("long"), FileMode.Create))
        {
            file.SetLength(256 * 1024 * 1024);
        }

        Socket socket = await _server.ConnectAsync(receiveBuffer: 8192);
        await socket.SendAsync("GET /long HTTP/1.1\r\nHost: a\r\n\r\n"u8.ToArray(), _stop);
        byte[] begin = new byte[1000];
        Assert.True(await socket.ReceiveAsync(begin, _stop) > 0);
        if (!stays)
        {
            socket.Dispose();
        }

        return socket;
    }

    private string PathOf(string name) => Path.Combine(_root, Uri.UnescapeDataString(name));

    private sealed class Forged : IAntiforgeryValidationFeature
    {
        public bool IsValid => false;

        public Exception? Error { get; } = new AntiforgeryValidationException("No token.");
    }

    /// <summary>A body whose end never comes: the client gives up when the server reads its beginning.</summary>
    private sealed class EndlessStream(Task isThere, CancellationTokenSource gone) : Stream
    {
        // More than the client keeps back.
        private int _left = 256 * 1024;

        public override bool CanRead => true;

        public override bool CanSeek => false;

        public override bool CanWrite => false;

        public override long Length => throw new NotSupportedException();

        public override long Position
        {
            get => throw new NotSupportedException();
            set => throw new NotSupportedException();
        }

        public override async ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
        {
            if (_left <= 0)
            {
                await isThere.WaitAsync(Eventually.Limit, CancellationToken.None);
                await gone.CancelAsync();
                cancellationToken.ThrowIfCancellationRequested();
            }

            _left -= buffer.Length;
            return buffer.Length;
        }

        public override int Read(byte[] buffer, int offset, int count) => throw new NotSupportedException();

        public override void Flush()
        {
        }

        public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

        public override void SetLength(long value) => throw new NotSupportedException();

        public override void Write(byte[] buffer, int offset, int count) => throw new NotSupportedException();
    }
}
