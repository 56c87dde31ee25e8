using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The body of a response while its endpoint runs: everything goes into the pipe, and the response does not begin. Whoever turns buffering
/// off before the first byte writes to the server as before.
/// </summary>
internal sealed class BufferedResponse : IHttpResponseBodyFeature
{
    private readonly FileBufferingPipe _pipe;
    private readonly IHttpResponseBodyFeature _server;
    private Exception? _givenUp;

    private BufferedResponse(FileBufferingPipe pipe, IHttpResponseBodyFeature server)
    {
        _pipe = pipe;
        _server = server;
        Writer = new SwitchedWriter(this);
        Stream = Writer.AsStream(leaveOpen: true);
    }

    public Stream Stream { get; }

    public PipeWriter Writer { get; }

    internal bool IsOff { get; private set; }

    public void DisableBuffering()
    {
        IsOff = _pipe.Length == 0 && _pipe.Writer.UnflushedBytes == 0;
        _server.DisableBuffering();
    }

    public Task StartAsync(CancellationToken cancellationToken = default)
        => IsOff ? _server.StartAsync(cancellationToken) : Task.CompletedTask;

    public Task SendFileAsync(string path, long offset, long? count, CancellationToken cancellationToken = default)
        => IsOff ? _server.SendFileAsync(path, offset, count, cancellationToken)
            : SendFileFallback.SendFileAsync(Stream, path, offset, count, cancellationToken);

    public async Task CompleteAsync()
    {
        if (IsOff)
        {
            await _server.CompleteAsync().ConfigureAwait(false);
        }
        else
        {
            _ = await _pipe.Writer.FlushAsync().ConfigureAwait(false);
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

        if (buffered._givenUp is { } error)
        {
            ExceptionDispatchInfo.Throw(error);
        }

        if (beforeSendAsync is not null)
        {
            await beforeSendAsync(context, pipe, context.RequestAborted).ConfigureAwait(false);
        }

        if (response.StatusCode == StatusCodes.Status204NoContent)
        {
            response.ContentLength = null;
        }

        if (response.StatusCode is StatusCodes.Status204NoContent or StatusCodes.Status304NotModified)
        {
            return;
        }

        bool isHead = HttpMethods.IsHead(context.Request.Method);
        if (!isHead || pipe.Length > 0)
        {
            // An endpoint that writes nothing for HEAD has not told what it would write for GET.
            response.ContentLength ??= pipe.Length;
        }

        if (!isHead)
        {
            await pipe.Reader.CopyToAsync(server.Writer, context.RequestAborted).ConfigureAwait(false);
        }
    }

    /// <summary>Writes to the pipe, or, once buffering is off, to the server: middleware may have taken it before that.</summary>
    private sealed class SwitchedWriter(BufferedResponse response) : PipeWriter
    {
        public override bool CanGetUnflushedBytes => Target.CanGetUnflushedBytes;

        public override long UnflushedBytes => Target.UnflushedBytes;

        private PipeWriter Target => response.IsOff ? response._server.Writer : response._pipe.Writer;

        public override Memory<byte> GetMemory(int sizeHint = 0) => Target.GetMemory(sizeHint);

        public override Span<byte> GetSpan(int sizeHint = 0) => Target.GetSpan(sizeHint);

        public override void Advance(int bytes) => Target.Advance(bytes);

        public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
            => Target.FlushAsync(cancellationToken);

        public override ValueTask<FlushResult> WriteAsync(ReadOnlyMemory<byte> source, CancellationToken cancellationToken = default)
            => Target.WriteAsync(source, cancellationToken);

        public override void CancelPendingFlush() => Target.CancelPendingFlush();

        public override void Complete(Exception? exception = null)
        {
            response._givenUp ??= exception;
            Target.Complete(exception);
        }

        public override ValueTask CompleteAsync(Exception? exception = null)
        {
            response._givenUp ??= exception;
            return Target.CompleteAsync(exception);
        }
    }
}
