using Pipelines.File.Buffering;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File;

/// <summary>
/// A pipe whose <see cref="Writer"/> never waits for a reader: it holds little in memory, goes on in a file that nobody else finds, and can
/// be read any number of times, while it is written and afterwards.
/// </summary>
/// <remarks>
/// <para>Every reader gets every byte from its offset, waits at the end until the writer completes, and then ends, with the writer's error
/// if there is one: an exception of <see cref="PipeWriter.Complete"/>, a full disk, <see cref="FileBufferingPipeOptions.MaxLength"/>.
/// Flushes wait only while more than 1 MiB waits to be written to the file.</para>
/// <para>The writer and each reader have one caller at a time, from any thread, as those of <see cref="Pipe"/> have; <c>Cancel…</c>,
/// <see cref="Dispose"/>, <see cref="Length"/>, <see cref="OpenReader"/> and <see cref="SaveAsync"/> are for any thread.</para>
/// </remarks>
/// <example>
/// <code>
/// using System.Buffers;
/// using System.IO.Pipelines;
/// using System.Security.Cryptography;
/// using Pipelines.File;
///
/// await using FileBufferingPipe pipe = new(new() { MaxLength = 100_000_000 });
/// pipe.Writer.Write("some bytes"u8);
/// await pipe.Writer.CompleteAsync();
/// byte[] hash = await SHA256.HashDataAsync(pipe.AsStream());
/// await pipe.Reader.CopyToAsync(Console.OpenStandardOutput());
/// await pipe.SaveAsync("received.bin");
/// </code>
/// </example>
public sealed partial class FileBufferingPipe : IDisposable, IAsyncDisposable
{
    private static readonly Action<object?, CancellationToken> s_onTokenCanceled = static (pipe, _) => ((FileBufferingPipe)pipe!).Wake();

    private readonly FileBufferingPipeOptions _options;
    private readonly UnixCalls _calls;

    // The lock of the pipe, of its writer and of all its readers. It guards every field that is not readonly, but for those of which
    // another owner is named.
    private readonly Lock _gate = new();

    private readonly List<BufferReader> _readers = [];

    // The bytes in memory: everything from StartLocked to _advanced, in segments that writer, readers and the write to the file share.
    // Each is used once by this chain, once by each reader whose buffer has it, once by the write; the last one returns it.
    private FileSegment? _head;
    private FileSegment? _tail;

    // Bytes that readers may see, and bytes that are in the file: those below it that are not in memory. _flushed is the first one behind.
    private long _flushed;
    private long _written;

    // The file: null in memory. Its name is taken once.
    private bool _isInFile;
    private bool _isSpilling;
    private bool _hasFileFailed;
    private bool _wantsAllInFile;
    private NamelessFile _file;
    private SharedFile? _shared;

    // The writer.
    private bool _isWriterCompleted;
    private bool _isFlushCanceled;

    private ExceptionDispatchInfo? _error;
    private bool _isDisposed;

    // All who wait for anything. Whoever changes something ends all waits, and each looks again.
    private readonly List<PendingResult<bool>> _waits = [];

    /// <summary>Makes an empty pipe. It opens no file before it needs one.</summary>
    /// <param name="options">How to buffer; <see langword="null"/> means the defaults.</param>
    /// <exception cref="ArgumentException">An option is wrong.</exception>
    public FileBufferingPipe(FileBufferingPipeOptions? options = null)
        : this(options, null)
    {
    }

    /// <summary>For tests: with substitutes for the system calls.</summary>
    internal FileBufferingPipe(FileBufferingPipeOptions? options, UnixCalls? calls)
    {
        _options = options ?? FileBufferingPipeOptions.Default;
        _options.Validate();
        _calls = calls ?? UnixCalls.Default;
        Writer = new BufferWriter(this);
        BufferReader reader = new(this, 0);
        _readers.Add(reader);
        Reader = reader;
    }

    /// <summary>
    /// Writes to the pipe. A flush shows the bytes to the readers. A flush throws what keeps the pipe from going on, and so does
    /// <see cref="PipeWriter.CompleteAsync"/>, which waits for the file, too, if there is one.
    /// </summary>
    public PipeWriter Writer { get; }

    /// <summary>The first reader, from the beginning.</summary>
    public PipeReader Reader { get; }

    /// <summary>The number of bytes that were flushed.</summary>
    public long Length
    {
        get
        {
            lock (_gate)
            {
                return _flushed;
            }
        }
    }

    /// <summary>Whether the pipe goes on in a file: more than <see cref="FileBufferingPipeOptions.MemoryThreshold"/> was flushed.</summary>
    public bool IsInFile
    {
        get
        {
            lock (_gate)
            {
                return _isInFile;
            }
        }
    }

    /// <summary>The offset of the first byte that is in memory.</summary>
    internal long StartLocked => _head?.RunningIndex ?? _flushed;

    internal long FlushedLocked => _flushed;

    internal long WrittenLocked => _written;

    /// <summary>Whether no more bytes come.</summary>
    internal bool IsOverLocked => _isWriterCompleted || _error is not null;

    internal bool HasFailedLocked => _error is not null;

    /// <summary>Whether the file gets no more of what was flushed: it has all, or has failed.</summary>
    internal bool IsFileFinalLocked => _written >= _flushed || _hasFileFailed;

    internal Lock Gate => _gate;

    internal bool HasCallersPool => _options.Pool is not null;

    /// <summary>Opens another reader. Complete it when you are done, or dispose of the pipe.</summary>
    /// <param name="offset">The offset of its first byte. It may be one that is not written yet.</param>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="offset"/> is negative.</exception>
    /// <exception cref="InvalidOperationException"><see cref="FileBufferingPipeOptions.Keep"/> is not set.</exception>
    /// <exception cref="ObjectDisposedException">The pipe is disposed.</exception>
    public PipeReader OpenReader(long offset = 0)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(offset);
        BufferReader reader = new(this, offset);
        lock (_gate)
        {
            ThrowIfNotKeptLocked();
            _readers.Add(reader);
        }

        return reader;
    }

    /// <summary>
    /// Returns a stream that reads and seeks. Reads wait at the end until the writer completes. Any number of streams may be used at once,
    /// each by one caller. They need not be disposed of.
    /// </summary>
    /// <inheritdoc cref="OpenReader" path="/exception[position()&gt;1]"/>
    public Stream AsStream()
    {
        lock (_gate)
        {
            ThrowIfNotKeptLocked();
        }

        return new BufferStream(this);
    }

    /// <summary>Frees memory and file, whatever is under way: calls that wait end with <see cref="ObjectDisposedException"/>.</summary>
    /// <remarks>A buffer that a caller of the writer or of a reader still holds is not reused.</remarks>
    public void Dispose()
    {
        BufferReader[] readers;
        bool isReleased;
        lock (_gate)
        {
            if (_isDisposed)
            {
                return;
            }

            _isDisposed = true;
            readers = [.. _readers];
            isReleased = !_isSpilling;
        }

        foreach (BufferReader reader in readers)
        {
            reader.Complete();
        }

        Wake();
        if (isReleased)
        {
            Release();
        }
    }

    /// <summary>Disposes as <see cref="Dispose"/> does, and completes when memory and file are freed.</summary>
    public async ValueTask DisposeAsync()
    {
        Dispose();
        await _released.Task.ConfigureAwait(false);
    }

    /// <summary>Reads at an offset, for a stream. Waits at the end until there is more or the pipe is over; then returns 0.</summary>
    internal async ValueTask<int> ReadAtAsync(Memory<byte> destination, long offset, CancellationToken cancellationToken)
    {
        while (true)
        {
            Hold held = default;
            SharedFile? file = null;
            PendingResult<bool>? wait = null;
            lock (_gate)
            {
                ObjectDisposedException.ThrowIf(_isDisposed, this);
                cancellationToken.ThrowIfCancellationRequested();
                if (destination.IsEmpty)
                {
                    return 0;
                }

                if (offset < _flushed && offset >= StartLocked)
                {
                    held = HoldLocked(offset, Math.Min(_flushed, offset + destination.Length));
                }
                else if (offset < _written)
                {
                    file = _shared;
                    destination = destination[..(int)Math.Min(destination.Length, _written - offset)];
                }
                else if (IsOverLocked)
                {
                    _error?.Throw();
                    return 0;
                }
                else
                {
                    wait = WaitLocked(cancellationToken);
                }
            }

            if (file is not null)
            {
                int count = await file.ReadAsync(destination, offset).ConfigureAwait(false);
                return count > 0 ? count : throw Truncated();
            }

            if (wait is not null)
            {
                await EndWaitAsync(wait, cancellationToken).ConfigureAwait(false);
                continue;
            }

            held.Bytes.CopyTo(destination.Span);
            int read = (int)held.Bytes.Length;
            Free(held);
            return read;
        }
    }

    /// <summary>Opens a reader of what is in the file.</summary>
    internal FilePipeReader OpenFileReader(long offset, long length)
        => FilePipeReader.Create(_file.Opened.Handle, new FilePipeReaderOptions
        {
            Offset = offset,
            Length = length,
            LeaveOpen = true,
            Pool = _options.Pool,
        });

    /// <summary>The file has a name (<see cref="SaveAsync"/>), and its bytes are gone.</summary>
    internal static EndOfStreamException Truncated() => new("The file of the pipe was saved, and somebody has truncated it since.");

    internal void ThrowErrorLocked() => _error!.Throw();

    internal void ThrowIfDisposedLocked() => ObjectDisposedException.ThrowIf(_isDisposed, this);

    /// <summary>Begins a wait for any change. Called under the lock; <see cref="EndWaitAsync"/> is called without it.</summary>
    internal PendingResult<bool> WaitLocked(CancellationToken cancellationToken)
    {
        PendingResult<bool> wait = PendingResult<bool>.Rent(cancellationToken);
        _waits.Add(wait);
        return wait;
    }

    internal ValueTask<bool> EndWaitAsync(PendingResult<bool> wait, CancellationToken cancellationToken)
        => wait.EndWith(s_onTokenCanceled, this, cancellationToken);

    /// <summary>Ends all waits: something has changed. Called without the lock.</summary>
    internal void Wake()
    {
        PendingResult<bool>[] waits;
        lock (_gate)
        {
            waits = _waits.Count == 0 ? [] : [.. _waits];
            _waits.Clear();
        }

        foreach (PendingResult<bool> wait in waits)
        {
            wait.CompleteOnPool(true, null);
        }
    }

    internal void RemoveLocked(BufferReader reader) => _ = _readers.Remove(reader);

    private void ThrowIfNotKeptLocked()
    {
        ThrowIfDisposedLocked();
        if (!_options.Keep)
        {
            throw new InvalidOperationException("The pipe gives away what its reader has consumed "
                + $"({nameof(FileBufferingPipeOptions.Keep)} is false), so it has one reader.");
        }
    }
}
