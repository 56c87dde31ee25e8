using System.IO.Pipelines;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The response body of one request at a time, and of the next one that has the same of the server's: the server's own, but for files, which are pumped into its writer.
/// </summary>
internal sealed class FileSendingFeature : IHttpResponseBodyFeature
{
    /// <summary>How long a request that has lost its client waits to be told so.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(5);

    private readonly FileSender _sender;
    private readonly IHttpResponseBodyFeature _inner;
    private HttpContext _context = null!;

    // The server's own, whatever the application replaces it by: canceled when the client is gone.
    private CancellationToken _gone;

    // Interlocked: null while a send uses it. A second one at once, which is a mistake that the writer tells, has one of its own.
    private FileCopy? _copy;

    internal FileSendingFeature(FileSender sender, IHttpResponseBodyFeature inner)
    {
        _sender = sender;
        _inner = inner;
    }

    public Stream Stream => _inner.Stream;

    public PipeWriter Writer => _inner.Writer;

    /// <summary>Serves a request from here on.</summary>
    internal void Begin(HttpContext context)
    {
        _context = context;
        _gone = context.RequestAborted;
    }

    public void DisableBuffering() => _inner.DisableBuffering();

    public Task StartAsync(CancellationToken cancellationToken = default) => _inner.StartAsync(cancellationToken);

    public Task CompleteAsync() => _inner.CompleteAsync();

    public Task SendFileAsync(string path, long offset, long? count, CancellationToken cancellationToken = default)
    {
        if (!cancellationToken.IsCancellationRequested && _sender.CanSend(_context, offset, count) && _sender.Files.Open(path) is { } file)
        {
            long wanted = count ?? file.Length - offset;
            if (_sender.CanSendOpen(_context, file.Length, offset, wanted))
            {
                FilePipelinesMetrics.Sent();
                return SendAsync(file, offset, wanted, cancellationToken);
            }

            file.Release();
        }

        // Also for everything that cannot be sent: the server throws what it documents.
        FilePipelinesMetrics.Left();
        return _inner.SendFileAsync(path, offset, count, cancellationToken);
    }

    /// <summary>Sends a part of an open file that is known to be there, and releases the file.</summary>
    internal async Task SendAsync(OpenFile file, long offset, long count, CancellationToken cancellationToken)
    {
        HttpContext context = _context;
        CancellationToken gone = _gone;
        FileCopy? copy = Interlocked.Exchange(ref _copy, null);
        if (copy is null)
        {
            copy = new FileCopy(file.Backend, offset);
        }
        else
        {
            copy.Reuse(file.Backend, offset);
        }

        IHttpMinResponseDataRateFeature? rateFeature = null;
        MinDataRate? rate = null;
        try
        {
            // Before any memory is asked for: what is written before the headers would be copied behind them.
            await _inner.StartAsync(cancellationToken).ConfigureAwait(false);
            rateFeature = context.Features.Get<IHttpMinResponseDataRateFeature>();
            rate = rateFeature?.MinDataRate;
            if (rate is not null)
            {
                rateFeature!.MinDataRate = _sender.Relax(rate);
            }

            PipeWriter writer = _inner.Writer;
            for (long left = count; ;)
            {
                int read = await copy.ReadAsync(writer, (int)Math.Min(left, _sender.SegmentSize)).ConfigureAwait(false);
                if (read == 0)
                {
                    throw new EndOfStreamException($"The file was truncated while it was sent, {left} of {count} bytes before the end : '{file.Backend.Path}'");
                }

                left -= read;
                FlushResult flush = await writer.FlushAsync(cancellationToken).ConfigureAwait(false);
                if (left == 0)
                {
                    break;
                }

                if (flush.IsCompleted)
                {
                    // The client is gone, and nobody is left to tell: the server's own way ends as if it had sent the rest.
                    await ToldAsync(context, gone).ConfigureAwait(false);
                    break;
                }
            }
        }
        catch (Exception e) when (context.Response.HasStarted && !gone.IsCancellationRequested)
        {
            // The body is not whole, and nobody further out may end it as if it were. What is thrown after that the server takes for the client's going away. What the server itself
            // refuses, as more bytes than were announced, it also ends itself, behind the bytes that it has.
            bool isFiles = copy.Error is not null || e is EndOfStreamException;
            if (isFiles || e is OperationCanceledException)
            {
                context.Abort();
            }

            if (isFiles)
            {
                _sender.LogFailed(file.Backend.Path, e);
            }

            throw;
        }
        finally
        {
            copy.Dispose();
            Volatile.Write(ref _copy, copy);
            file.Release();
            if (rate is not null)
            {
                rateFeature!.MinDataRate = rate;
            }
        }
    }

    /// <summary>
    /// Waits until the server has told the request that its client is gone, which it does soon after the writer: a response that ends before that with less than it has announced is
    /// logged as the application's mistake.
    /// </summary>
    private static async Task ToldAsync(HttpContext context, CancellationToken gone)
    {
        if (!gone.CanBeCanceled || gone.IsCancellationRequested)
        {
            return;
        }

        TaskCompletionSource told = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using (gone.UnsafeRegister(static told => ((TaskCompletionSource)told!).TrySetResult(), told).ConfigureAwait(false))
        {
            try
            {
                await told.Task.WaitAsync(s_patience, CancellationToken.None).ConfigureAwait(false);
            }
            catch (TimeoutException)
            {
                context.Abort();
            }
        }
    }
}
