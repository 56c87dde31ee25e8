using System.Net.Http.Headers;

namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>The status, the headers and the text of a response.</summary>
internal sealed class TusAnswer
{
    private readonly HttpResponseHeaders _headers;

    private TusAnswer(int status, HttpResponseHeaders headers, string text)
    {
        Status = status;
        _headers = headers;
        Text = text;
    }

    internal int Status { get; }

    internal string Text { get; }

    /// <summary>A header; empty if it is not there.</summary>
    internal string this[string name] => _headers.TryGetValues(name, out IEnumerable<string>? values) ? string.Join(',', values) : "";

    internal static async Task<TusAnswer> SendAsync(
        HttpClient client, string method, Uri target, HttpContent? body, params (string Name, string Value)[] headers)
    {
        using HttpRequestMessage request = new(new HttpMethod(method), target)
        {
            Content = body,
            Version = client.DefaultRequestVersion,
            VersionPolicy = client.DefaultVersionPolicy,
        };
        if (body is not null)
        {
            body.Headers.ContentType = new MediaTypeHeaderValue("application/offset+octet-stream");
        }

        foreach ((string name, string value) in headers.Prepend(("Tus-Resumable", "1.0.0")).GroupBy(header => header.Item1)
            .Select(same => same.Last()).Where(header => header.Item2.Length > 0))
        {
            if (name == "Content-Type")
            {
                body!.Headers.ContentType = new MediaTypeHeaderValue(value);
            }
            else if (!request.Headers.TryAddWithoutValidation(name, value))
            {
                body!.Headers.Add(name, value);
            }
        }

        using HttpResponseMessage response = await client.SendAsync(request, TestContext.Current.CancellationToken);
        string text = await response.Content.ReadAsStringAsync(TestContext.Current.CancellationToken);
        return new TusAnswer((int)response.StatusCode, response.Headers, text);
    }
}
