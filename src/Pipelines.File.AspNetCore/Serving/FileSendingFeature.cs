using System.IO.Pipelines;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The response body feature of one request at a time; later requests with the same feature of the server's reuse it. It passes everything
/// on to the server's own feature, except files, which it pumps into the server's writer.
/// </summary>
internal sealed class FileSendingFeature(FileSender sender, IHttpResponseBodyFeature inner) : IHttpResponseBodyFeature
{
    /// <summary>How long a send that has lost its client waits for the server to abort the request.</summary>
    private static readonly TimeSpan s_abortTimeout = TimeSpan.FromSeconds(5);

    private HttpContext _context = null!;

    // RequestAborted as the server has set it, even if the application replaces it: canceled when the client is gone.
    private CancellationToken _requestAborted;

    // The number of bytes of a send that is about to start the response; 0 otherwise.
    private long _startingLength;

    // Taken with Interlocked.Exchange: null while a send uses it.
    private CountedWriter? _counted = new();

    /// <summary>The files that stay open for later requests.</summary>
    internal OpenFiles Files => sender.Files;

    public Stream Stream => inner.Stream;

    public PipeWriter Writer => inner.Writer;

    /// <summary>Begins to serve a request.</summary>
    /// <param name="context">The request.</param>
    /// <param name="isKestrel">Whether the server is Kestrel, which compares the body with the announced length.</param>
    internal void Begin(HttpContext context, bool isKestrel)
    {
        _context = context;
        _requestAborted = context.RequestAborted;
        if (isKestrel && !context.Response.HasStarted)
        {
            // The callback that is registered first runs last, after the others have set their headers.
            context.Response.OnStarting(static feature => ((FileSendingFeature)feature).CheckLength(), this);
        }
    }

    public void DisableBuffering() => inner.DisableBuffering();

    public Task StartAsync(CancellationToken cancellationToken = default) => inner.StartAsync(cancellationToken);

    public Task CompleteAsync() => inner.CompleteAsync();

    public Task SendFileAsync(string path, long offset, long? count, CancellationToken cancellationToken = default)
    {
        if (!cancellationToken.IsCancellationRequested && sender.CanSend(_context, offset, count) && sender.Files.Open(path) is { } file)
        {
            long wanted = count ?? file.Shared.Length - offset;
            if (sender.CanSendOpen(_context, file.Shared.Length, offset, wanted))
            {
                return SendAsync(file, offset, wanted, cancellationToken);
            }

            file.Release();
        }

        // Also if the file cannot be opened or sent: the server throws the documented exceptions.
        sender.Metrics.Left();
        return inner.SendFileAsync(path, offset, count, cancellationToken);
    }

    /// <summary>Sends a whole open file, and releases it.</summary>
    internal Task SendFileAsync(OpenFile file, CancellationToken cancellationToken)
    {
        long length = file.Shared.Length;
        if (!cancellationToken.IsCancellationRequested && sender.CanSend(_context, 0, length))
        {
            return SendAsync(file, 0, length, cancellationToken);
        }

        file.Release();
        sender.Metrics.Left();
        return inner.SendFileAsync(file.Shared.Path, 0, length, cancellationToken);
    }

    /// <summary>Sends a part of an open file, which was long enough when it was opened, and releases the file.</summary>
    internal async Task SendAsync(OpenFile file, long offset, long count, CancellationToken cancellationToken)
    {
        HttpContext context = _context;
        CancellationToken requestAborted = _requestAborted;
        bool isReading = false;
        string? broken = "abandoned";
        IHttpMinResponseDataRateFeature? rateFeature = null;
        MinDataRate? rate = null;
        CountedWriter? counted = null;
        try
        {
            // Start the response before the first GetMemory: the server copies bytes that are written before the headers.
            _startingLength = count;
            await inner.StartAsync(cancellationToken).ConfigureAwait(false);
            _startingLength = 0;
            PipeWriter writer = inner.Writer;

            // Only HTTP/1.1 has this feature. For a chunked response Kestrel counts all bytes, so that needs no CountedWriter.
            rateFeature = context.Features.Get<IHttpMinResponseDataRateFeature>();
            rate = context.Response.Headers.TransferEncoding.Count == 0 ? rateFeature?.MinDataRate : null;
            if (rate is not null)
            {
                rateFeature!.MinDataRate = sender.Reduce(rate);
                counted = Interlocked.Exchange(ref _counted, null) ?? new CountedWriter();
                writer = counted.Wrap(writer);
            }

            for (long left = count; ;)
            {
                isReading = true;
                broken = "failed";
                int read = await file.Shared.ReadAsync(writer, offset + count - left, (int)Math.Min(left, sender.BufferSize))
                    .ConfigureAwait(false);
                if (read == 0)
                {
                    broken = "truncated";
                    throw new EndOfStreamException(
                        $"The file was truncated while it was sent, {left} of {count} bytes before the end : '{file.Shared.Path}'");
                }

                isReading = false;
                broken = "abandoned";
                left -= read;
                if (left == 0)
                {
                    // The server has every byte. Counted before the client can see the last one.
                    broken = null;
                    sender.Metrics.Sent();
                }

                FlushResult flush = await writer.FlushAsync(cancellationToken).ConfigureAwait(false);
                if (left == 0)
                {
                    break;
                }

                if (flush.IsCompleted)
                {
                    // The client is gone. The send ends as if the rest was sent, as the server's own SendFileAsync does.
                    await WaitForAbortAsync(context, requestAborted).ConfigureAwait(false);
                    break;
                }
            }
        }
        catch (InvalidOperationException)
        {
            // The server's own, such as more bytes than were announced: it ends the response itself, after the bytes that it has.
            broken = broken is null ? null : "failed";
            throw;
        }
        catch (Exception e) when (context.Response.HasStarted && !requestAborted.IsCancellationRequested)
        {
            // The body is incomplete, and no outer code may end it as if it were whole: so the request is aborted. After that the server
            // takes exceptions for a disconnected client.
            bool isFileError = isReading && e is IOException or UnauthorizedAccessException;
            if (isFileError || e is OperationCanceledException)
            {
                context.Abort();
            }

            if (isFileError)
            {
                sender.LogFailed(file.Shared.Path, e);
            }

            throw;
        }
        finally
        {
            file.Release();
            if (broken is not null)
            {
                sender.Metrics.ResponseBroke(broken);
            }

            _startingLength = 0;
            if (rate is not null)
            {
                rateFeature!.MinDataRate = rate;
                Volatile.Write(ref _counted, counted);
            }
        }
    }

    /// <summary>
    /// Refuses a Content-Length that another OnStarting callback has set and that is less than what is about to be sent. The server would
    /// refuse it, too, but only at the first write, when the headers are sent.
    /// </summary>
    private Task CheckLength()
        => _context.Response.ContentLength < _startingLength
            ? throw new InvalidOperationException(
                $"Response Content-Length mismatch: too many bytes written ({_startingLength} of {_context.Response.ContentLength}).")
            : Task.CompletedTask;

    /// <summary>
    /// Waits until the server has aborted the request whose client is gone, which it does soon after its writer has reported that. Aborts
    /// the request itself if the server has not done so within <see cref="s_abortTimeout"/>. If a response ended before the abort with
    /// fewer bytes than announced, the server would log that as the application's mistake.
    /// </summary>
    private static async Task WaitForAbortAsync(HttpContext context, CancellationToken requestAborted)
    {
        if (requestAborted.CanBeCanceled)
        {
            await Task.Delay(s_abortTimeout, requestAborted).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
            if (!requestAborted.IsCancellationRequested)
            {
                context.Abort();
            }
        }
    }
}
