using Microsoft.AspNetCore.Connections;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>A request body of which the server gets as many bytes as a test lets it, all such bodies together.</summary>
internal sealed class HeldBody(Stream body, HeldBody.Gate gate) : Stream
{
    public override bool CanRead => true;

    public override bool CanSeek => false;

    public override bool CanWrite => false;

    public override long Length => throw new NotSupportedException();

    public override long Position { get => throw new NotSupportedException(); set => throw new NotSupportedException(); }

    public override async ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
    {
        int room = await gate.WaitAsync(buffer.Length, cancellationToken);
        int read = await body.ReadAsync(buffer[..room], cancellationToken);
        gate.Took(read);
        return read;
    }

    public override int Read(byte[] buffer, int offset, int count) => throw new NotSupportedException();

    public override void Flush() => throw new NotSupportedException();

    public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

    public override void SetLength(long value) => throw new NotSupportedException();

    public override void Write(byte[] buffer, int offset, int count) => throw new NotSupportedException();

    /// <summary>How many bytes may pass.</summary>
    internal sealed class Gate
    {
        private readonly Lock _lock = new();
        private long _left;
        private int _breaks;
        private TaskCompletionSource _changed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        private TaskCompletionSource _reached = new(TaskCreationOptions.RunContinuationsAsynchronously);

        /// <summary>Lets so many bytes more pass.</summary>
        internal void Let(long bytes)
        {
            lock (_lock)
            {
                _left = bytes;
                _reached = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
                _changed.SetResult();
                _changed = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
            }
        }

        /// <summary>The bodies that wait now break off, as when the server notices that the client has gone.</summary>
        internal void Break()
        {
            lock (_lock)
            {
                _breaks++;
                _changed.SetResult();
                _changed = new TaskCompletionSource(TaskCreationOptions.RunContinuationsAsynchronously);
            }
        }

        /// <summary>Until a body waits because all of them have passed.</summary>
        internal Task IsReachedAsync(CancellationToken cancellationToken)
        {
            lock (_lock)
            {
                return _reached.Task.WaitAsync(cancellationToken);
            }
        }

        internal void Took(int bytes)
        {
            lock (_lock)
            {
                _left -= bytes;
            }
        }

        internal async ValueTask<int> WaitAsync(int bytes, CancellationToken cancellationToken)
        {
            int? breaks = null;
            while (true)
            {
                Task changed;
                lock (_lock)
                {
                    breaks ??= _breaks;
                    if (breaks != _breaks)
                    {
                        throw new ConnectionResetException("The client has gone.");
                    }

                    if (_left > 0)
                    {
                        return (int)Math.Min(_left, bytes);
                    }

                    _reached.TrySetResult();
                    changed = _changed.Task;
                }

                await changed.WaitAsync(cancellationToken);
            }
        }
    }
}
