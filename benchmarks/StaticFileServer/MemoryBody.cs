using System.IO.Pipelines;
using Microsoft.AspNetCore.Http.Features;

namespace StaticFileServer;

/// <summary>
/// The server's own response body, but for files, which it sends out of memory: what UseFilePipelines would cost if opening, comparing and
/// reading a file cost nothing.
/// </summary>
internal sealed class MemoryBody(IHttpResponseBodyFeature inner, Dictionary<string, byte[]> files) : IHttpResponseBodyFeature
{
    private const int Step = 64 * 1024;

    public Stream Stream => inner.Stream;
    public PipeWriter Writer => inner.Writer;
    public void DisableBuffering() => inner.DisableBuffering();
    public Task StartAsync(CancellationToken cancellationToken = default) => inner.StartAsync(cancellationToken);
    public Task CompleteAsync() => inner.CompleteAsync();

    public Task SendFileAsync(string path, long offset, long? count, CancellationToken cancellationToken = default)
        => SendAsync(inner, files[path], cancellationToken);

    /// <summary>Copies all of it into the body, a step and a flush at a time.</summary>
    internal static async Task SendAsync(IHttpResponseBodyFeature body, byte[] content, CancellationToken cancellationToken)
    {
        await body.StartAsync(cancellationToken);
        for (int sent = 0; sent < content.Length;)
        {
            int step = Math.Min(Step, content.Length - sent);
            content.AsSpan(sent, step).CopyTo(body.Writer.GetSpan(step));
            body.Writer.Advance(step);
            sent += step;
            await body.Writer.FlushAsync(cancellationToken);
        }
    }
}
