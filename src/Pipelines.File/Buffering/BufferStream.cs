using Pipelines.File.IO;
using Pipelines.File.Reading;

namespace Pipelines.File.Buffering;

/// <summary>The bytes of a pipe as a stream that can seek: each read is one of the pipe's, straight into the caller's memory.</summary>
internal sealed class BufferStream(FileBufferingPipe pipe) : SeekableStream
{
    private const int MinCopy = 64 * 1024;

    private readonly BufferView _view = new(pipe, length: 0);

    public override long Length => pipe.Length;

    // Stream takes 1 byte at a time if its length is that of the position when the copy begins.
    public override Task CopyToAsync(Stream destination, int bufferSize, CancellationToken cancellationToken)
        => base.CopyToAsync(destination, Math.Max(bufferSize, MinCopy), cancellationToken);

    public override void CopyTo(Stream destination, int bufferSize) => base.CopyTo(destination, Math.Max(bufferSize, MinCopy));

    protected override async ValueTask<int> ReadAtAsync(Memory<byte> buffer, long offset, CancellationToken cancellationToken)
    {
        cancellationToken.ThrowIfCancellationRequested();
        FileRequest request = _view.Rent();
        try
        {
            do
            {
                request.Clear();
                request.Begin(FileRequestKind.Read, offset);
                request.Add(buffer, address: 0);
                request.Pin();
                if (!_view.TryPerform(request))
                {
                    SharedFile.PendingRequest pending = new();
                    _view.Run(request, pending);
                    using CancellationTokenRegistration canceling = cancellationToken.UnsafeRegister(_ => _view.Cancel(request), null);
                    await pending.Task.ConfigureAwait(false);
                }

                if (request.IsCanceled)
                {
                    cancellationToken.ThrowIfCancellationRequested();
                }
            }
            while (request.IsCanceled);

            if (request.Error is { } error)
            {
                ExceptionDispatchInfo.Throw(error);
            }

            return (int)request.Transferred;
        }
        finally
        {
            _view.Return(request);
        }
    }
}
