using System.IO.Pipelines;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;
using Pipelines.File.Backends;

namespace Pipelines.File.AspNetCore;

/// <summary>The response body of one request: the server's own, but for files, which are pumped into its writer.</summary>
internal sealed class FileSendingFeature : IHttpResponseBodyFeature
{
    private readonly FileSender _sender;
    private readonly HttpContext _context;
    private readonly IHttpResponseBodyFeature _inner;

    internal FileSendingFeature(FileSender sender, HttpContext context, IHttpResponseBodyFeature inner)
    {
        _sender = sender;
        _context = context;
        _inner = inner;
    }

    public Stream Stream => _inner.Stream;

    public PipeWriter Writer => _inner.Writer;

    public void DisableBuffering() => _inner.DisableBuffering();

    public Task StartAsync(CancellationToken cancellationToken = default) => _inner.StartAsync(cancellationToken);

    public Task CompleteAsync() => _inner.CompleteAsync();

    public Task SendFileAsync(string path, long offset, long? count, CancellationToken cancellationToken = default)
    {
        FileBackend? file = null;
        if (!cancellationToken.IsCancellationRequested && _sender.CanSend(_context, offset, count))
        {
            file = TryOpen(path);
            if (file is not null)
            {
                long length = file.Properties.Length;
                long wanted = count ?? length - offset;
                if (_sender.CanSendOpen(_context, length, offset, wanted))
                {
                    FilePipelinesMetrics.Sent();
                    return SendAsync(file, offset, wanted, cancellationToken);
                }

                file.Release(closeHandle: true);
            }
        }

        // Also for everything that cannot be sent: the server throws what it documents.
        FilePipelinesMetrics.Left();
        return _inner.SendFileAsync(path, offset, count, cancellationToken);
    }

    private static FileBackend? TryOpen(string path)
    {
        try
        {
            // The server's own sharing.
            return FileBackends.Open(FilePipeBackend.Auto, path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite, FileOptions.None, preallocationSize: 0);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or ArgumentException or NotSupportedException)
        {
            return null;
        }
    }

    /// <summary>Sends a part of an open file that is known to be there, and closes the file.</summary>
    internal async Task SendAsync(FileBackend file, long offset, long count, CancellationToken cancellationToken)
    {
        FileCopy copy = new(file, offset);
        IHttpMinResponseDataRateFeature? rateFeature = null;
        MinDataRate? rate = null;
        try
        {
            // Before any memory is asked for: what is written before the headers would be copied behind them.
            await _inner.StartAsync(cancellationToken).ConfigureAwait(false);
            rateFeature = _context.Features.Get<IHttpMinResponseDataRateFeature>();
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
                    throw new IOException($"The file was truncated while it was sent, {left} of {count} bytes before the end : '{file.Path}'");
                }

                left -= read;
                FlushResult flush = await writer.FlushAsync(cancellationToken).ConfigureAwait(false);
                if (left == 0)
                {
                    break;
                }

                if (flush.IsCompleted)
                {
                    throw new OperationCanceledException("The client is gone.", cancellationToken);
                }
            }
        }
        catch (Exception e) when (_context.Response.HasStarted)
        {
            // The body is not whole, and nobody further out may end it as if it were. What is thrown after that the server takes for the client's going away.
            _context.Abort();
            if (e is not OperationCanceledException)
            {
                _sender.LogFailed(file.Path, e);
            }

            throw;
        }
        finally
        {
            copy.Dispose();
            file.Release(closeHandle: true);
            if (rate is not null)
            {
                rateFeature!.MinDataRate = rate;
            }
        }
    }
}
