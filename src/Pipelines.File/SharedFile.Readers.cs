using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Reading;
using Pipelines.File.Threading;

namespace Pipelines.File;

/// <content>Readers and streams of the one open file.</content>
public sealed partial class SharedFile
{
    /// <summary>
    /// Opens a reader of the file, without opening it again: any number may read at once. Complete each before you dispose of the file.
    /// </summary>
    /// <param name="offset">The file offset of its first byte, in bytes.</param>
    /// <param name="length">The maximum number of bytes; <see langword="null"/> reads to the end.</param>
    /// <exception cref="ArgumentOutOfRangeException">A value is negative, or the sum is too large.</exception>
    /// <exception cref="ObjectDisposedException">The file is closed.</exception>
    public FilePipeReader OpenReader(long offset = 0, long? length = null)
    {
        ObjectDisposedException.ThrowIf(Volatile.Read(ref _isDisposed) != 0, this);
        FilePipeReaderOptions options = new() { Offset = offset, Length = length };
        options.Validate();
        return FilePipeReader.Create(_file, options, leaveOpen: true);
    }

    /// <summary>
    /// Returns a stream that reads and seeks, straight into the caller's memory. Any number may read at once, each by one caller. They need
    /// not be disposed of. Its <see cref="Stream.Length"/> is <see cref="Length"/>, and it ends there.
    /// </summary>
    /// <exception cref="ObjectDisposedException">The file is closed.</exception>
    public Stream AsStream()
    {
        ObjectDisposedException.ThrowIf(Volatile.Read(ref _isDisposed) != 0, this);
        return new SharedFileStream(this);
    }

    // Its task is not pooled: a caller that asks for the result too early would give it to another read while this one runs.

    /// <summary>Reads once into memory. Returns 0 at the end.</summary>
    internal async ValueTask<int> ReadAsync(Memory<byte> destination, long offset)
    {
        ObjectDisposedException.ThrowIf(Volatile.Read(ref _isDisposed) != 0, this);
        if (destination.IsEmpty)
        {
            return 0;
        }

        FileRequest request = _file.Rent();
        try
        {
            request.Begin(FileRequestKind.Read, offset);
            request.Add(destination, address: 0);
            request.Pin();
            bool isOver = _file.TryPerform(request);
            FilePipeMetrics.ReadsInline.Add(isOver ? 1 : 0);
            for (; !isOver || request.IsCanceled; isOver = true)
            {
                // Also if it was canceled, because nobody here has asked for that.
                FilePipeMetrics.ReadsHandedOver.Add();
                PendingRequest pending = new();
                _file.Run(request, pending);
                await pending.Task.ConfigureAwait(false);
            }

            if (request.Error is { } error)
            {
                ExceptionDispatchInfo.Throw(error);
            }

            return (int)request.Transferred;
        }
        finally
        {
            // It unpins the memory.
            _file.Return(request);
        }
    }

    private sealed class SharedFileStream(SharedFile file) : SeekableStream
    {
        public override long Length => file.Length;

        public override int Read(Span<byte> buffer)
        {
            ObjectDisposedException.ThrowIf(Volatile.Read(ref file._isDisposed) != 0, file);
            int read = file._file.ReadHere(buffer[..Within(buffer.Length, Position)], Position);
            Position += read;
            return read;
        }

        protected override ValueTask<int> ReadAtAsync(Memory<byte> buffer, long offset, CancellationToken cancellationToken)
            => cancellationToken.IsCancellationRequested ? ValueTask.FromCanceled<int>(cancellationToken)
                : file.ReadAsync(buffer[..Within(buffer.Length, offset)], offset);

        private int Within(int length, long offset) => (int)Math.Clamp(file.Length - offset, 0, length);
    }
}
