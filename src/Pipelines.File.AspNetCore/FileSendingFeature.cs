using System.IO.Pipelines;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;
using Pipelines.File.Reading;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The response body of one request at a time, and of the next one that has the same of the server's: the server's own, but for files,
/// which are pumped into its writer.
/// </summary>
internal sealed class FileSendingFeature(FileSender sender, IHttpResponseBodyFeature inner) : IHttpResponseBodyFeature
{
    /// <summary>How long a request that has lost its client waits to be told so.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromSeconds(5);

    private HttpContext _context = null!;

    // The server's own, whatever the application replaces it by: canceled when the client is gone.
    private CancellationToken _gone;

    // What a send is about to announce, bytes, from the time before the response starts; 0 otherwise.
    private long _starting;

    // Interlocked, as the copy: null while a send uses it.
    private CountedWriter? _counted = new();

    // Interlocked: null while a send uses it. A second one at once, which is a mistake that the writer tells, has one of its own.
    private FilePump? _pump;

    public Stream Stream => inner.Stream;

    public PipeWriter Writer => inner.Writer;

    /// <summary>Serves a request from here on.</summary>
    /// <param name="context">The request.</param>
    /// <param name="isKestrels">Whether the server compares the body with the length that is announced.</param>
    internal void Begin(HttpContext context, bool isKestrels)
    {
        _context = context;
        _gone = context.RequestAborted;
        if (isKestrels && !context.Response.HasStarted)
        {
            // What is registered first is called last, when the others have set their headers.
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
            long wanted = count ?? file.Length - offset;
            if (sender.CanSendOpen(_context, file.Length, offset, wanted))
            {
                FilePipelinesMetrics.Sent();
                return SendAsync(file, offset, wanted, cancellationToken);
            }

            file.Release();
        }

        // Also for everything that cannot be sent: the server throws what it documents.
        FilePipelinesMetrics.Left();
        return inner.SendFileAsync(path, offset, count, cancellationToken);
    }

    /// <summary>Sends a part of an open file that is known to be there, and releases the file.</summary>
    internal async Task SendAsync(OpenFile file, long offset, long count, CancellationToken cancellationToken)
    {
        HttpContext context = _context;
        CancellationToken gone = _gone;
        FilePump pump = Interlocked.Exchange(ref _pump, null) ?? new FilePump(file.Backend, offset);
        pump.Reuse(file.Backend, offset);
        IHttpMinResponseDataRateFeature? rateFeature = null;
        MinDataRate? rate = null;
        CountedWriter? counted = null;
        try
        {
            // Before any memory is asked for: what is written before the headers would be copied behind them.
            _starting = count;
            await inner.StartAsync(cancellationToken).ConfigureAwait(false);
            _starting = 0;
            PipeWriter writer = inner.Writer;

            // Only HTTP/1.1 has the feature, and of its responses Kestrel counts those in chunks by itself.
            rateFeature = context.Features.Get<IHttpMinResponseDataRateFeature>();
            rate = context.Response.Headers.TransferEncoding.Count == 0 ? rateFeature?.MinDataRate : null;
            if (rate is not null)
            {
                rateFeature!.MinDataRate = sender.RateOfShare(rate);
                counted = Interlocked.Exchange(ref _counted, null) ?? new CountedWriter();
                writer = counted.On(writer);
            }

            for (long left = count; ;)
            {
                int read = await pump.ReadAsync(writer, (int)Math.Min(left, sender.SegmentSize)).ConfigureAwait(false);
                if (read == 0)
                {
                    throw new EndOfStreamException(
                        $"The file was truncated while it was sent, {left} of {count} bytes before the end : '{file.Backend.Path}'");
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
            // The body is not whole, and nobody further out may end it as if it were. What is thrown after that the server takes for the
            // client's going away. What the server itself refuses, as more bytes than were announced, it also ends itself, behind the bytes
            // that it has.
            bool isFiles = pump.Error is not null || e is EndOfStreamException;
            if (isFiles || e is OperationCanceledException)
            {
                context.Abort();
            }

            if (isFiles)
            {
                sender.LogFailed(file.Backend.Path, e);
            }

            throw;
        }
        finally
        {
            pump.Dispose();
            Volatile.Write(ref _pump, pump);
            file.Release();
            _starting = 0;
            if (rate is not null)
            {
                rateFeature!.MinDataRate = rate;
                Volatile.Write(ref _counted, counted);
            }
        }
    }

    /// <summary>
    /// Refuses a length that was set last, behind everybody's back, and is less than what is about to be sent: the first write would be
    /// refused for it, but is made when the head is out.
    /// </summary>
    private Task CheckLength()
        => _context.Response.ContentLength < _starting
            ? throw new InvalidOperationException(
                $"Response Content-Length mismatch: too many bytes written ({_starting} of {_context.Response.ContentLength}).")
            : Task.CompletedTask;

    /// <summary>
    /// Waits until the server has told the request that its client is gone, which it does soon after the writer: a response that ends
    /// before that with less than it has announced is logged as the application's mistake.
    /// </summary>
    private static async Task ToldAsync(HttpContext context, CancellationToken gone)
    {
        if (gone.CanBeCanceled)
        {
            await Task.Delay(s_patience, gone).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
            if (!gone.IsCancellationRequested)
            {
                context.Abort();
            }
        }
    }
}
