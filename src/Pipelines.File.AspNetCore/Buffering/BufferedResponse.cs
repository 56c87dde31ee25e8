using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The body of a response while its endpoint runs: everything goes into the pipe, and the response does not begin. Whoever turns buffering
/// off before the first byte writes to the server as before.
/// </summary>
internal sealed class BufferedResponse(FileBufferingPipe pipe, IHttpResponseBodyFeature server) : IHttpResponseBodyFeature
{
    private readonly Stream _stream = pipe.Writer.AsStream(leaveOpen: true);

    public Stream Stream => IsOff ? server.Stream : _stream;

    public PipeWriter Writer => IsOff ? server.Writer : pipe.Writer;

    internal bool IsOff { get; private set; }

    public void DisableBuffering()
    {
        IsOff = pipe.Length == 0 && pipe.Writer.UnflushedBytes == 0;
        server.DisableBuffering();
    }

    public Task StartAsync(CancellationToken cancellationToken = default)
        => IsOff ? server.StartAsync(cancellationToken) : Task.CompletedTask;

    public Task SendFileAsync(string path, long offset, long? count, CancellationToken cancellationToken = default)
        => IsOff ? server.SendFileAsync(path, offset, count, cancellationToken)
            : SendFileFallback.SendFileAsync(_stream, path, offset, count, cancellationToken);

    public async Task CompleteAsync()
    {
        if (IsOff)
        {
            await server.CompleteAsync().ConfigureAwait(false);
        }
        else
        {
            _ = await pipe.Writer.FlushAsync().ConfigureAwait(false);
        }
    }

    /// <summary>Has the next one answer, and sends its answer, unless it throws.</summary>
    internal static async Task InvokeAsync(HttpContext context, RequestDelegate next, FileBufferingPipeOptions? options,
        Func<HttpContext, FileBufferingPipe, CancellationToken, ValueTask>? beforeSendAsync)
    {
        IHttpResponseBodyFeature server = context.Features.GetRequiredFeature<IHttpResponseBodyFeature>();
        FileBufferingPipe pipe = new(options);
        await using ConfiguredAsyncDisposable disposed = pipe.ConfigureAwait(false);
        BufferedResponse buffered = new(pipe, server);
        context.Features.Set<IHttpResponseBodyFeature>(buffered);
        try
        {
            await next(context).ConfigureAwait(false);
            await pipe.Writer.CompleteAsync().ConfigureAwait(false);
        }
        finally
        {
            context.Features.Set(server);
        }

        HttpResponse response = context.Response;
        if (buffered.IsOff || response.HasStarted)
        {
            return;
        }

        if (beforeSendAsync is not null)
        {
            await beforeSendAsync(context, pipe, context.RequestAborted).ConfigureAwait(false);
        }

        if (response.StatusCode is StatusCodes.Status204NoContent or StatusCodes.Status304NotModified)
        {
            return;
        }

        response.ContentLength ??= pipe.Length;
        if (!HttpMethods.IsHead(context.Request.Method))
        {
            await pipe.Reader.CopyToAsync(server.Writer, context.RequestAborted).ConfigureAwait(false);
        }
    }
}
