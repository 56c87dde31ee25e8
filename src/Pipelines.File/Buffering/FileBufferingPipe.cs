using Pipelines.File.Buffering;
using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;
using Pipelines.File.Writing;

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
/// <para>What differs from <see cref="Pipe"/>: a read may return a part of what was flushed, and <see cref="PipeReader.TryRead"/> returns
/// only what an earlier read has left, as that of <see cref="FilePipeReader"/>. The writer goes on when readers are completed, unless
/// <see cref="FileBufferingPipeOptions.Keep"/> is <see langword="false"/>.</para>
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
    private readonly FileBufferingPipeOptions _options;
    private readonly UnixCalls _calls;
    private readonly FastWrites? _writes;

    // The lock of the pipe, of its writer and of all its readers. It guards every field that is not readonly, but for those of which
    // another owner is named. Under it no code waits and no caller's code runs.
    private readonly Lock _gate = new();

    private readonly List<FilePipeReader> _readers = [];
    private FilePipeReader? _reader;
    private readonly TaskCompletionSource _released = new(TaskCreationOptions.RunContinuationsAsynchronously);

    // The first bytes, in segments that stay in memory; without Keep only those from _start on, which the reader has not got. The last
    // segment is filled by the writer's caller.
    private FileSegment? _head;
    private FileSegment? _tail;
    private long _start;

    // The first byte that is in the file, if there is one, at its own offset, and how far the file is written. What is before it is in
    // memory.
    private long _memoryEnd = long.MaxValue;
    private long _written;

    // How many bytes were flushed, or can be read at all if the file has failed.
    private long _flushed;

    // The file, and its writer. They are set once, by the writer's caller, and then never change.
    private NamelessFile _file;
    private FilePipeWriter? _spill;

    // The writer. The tasks are its caller's.
    private Task<NamelessFile>? _opening;
    private Task _ending = Task.CompletedTask;
    private bool _isWriterCompleted;
    private Exception? _error;

    // Whether the writer's caller holds memory of the last segment. Set under the lock, and cleared by that caller without it.
    private bool _callerHasRoom;

    // Interlocked.
    private bool _isFlushCanceled;

    // Ends the wait of a flush for the file to be made.
    private TaskCompletionSource? _openingCanceled;

    private bool _isReaderGone;
    private bool _isDisposed;

    /// <summary>Makes an empty pipe. It opens no file before it needs one.</summary>
    /// <param name="options">How to buffer; <see langword="null"/> means the defaults.</param>
    /// <exception cref="ArgumentException">An option is wrong.</exception>
    public FileBufferingPipe(FileBufferingPipeOptions? options = null)
        : this(options, null)
    {
    }

    /// <summary>For tests: with substitutes for the system calls, and for what is known of the time that writes take.</summary>
    internal FileBufferingPipe(FileBufferingPipeOptions? options, UnixCalls? calls, FastWrites? writes = null)
    {
        _options = options ?? FileBufferingPipeOptions.Default;
        _options.Validate();
        _calls = calls ?? UnixCalls.Default;
        _writes = writes;
        Folder = _options.FullFolder;
        Writer = new BufferWriter(this);
    }

    /// <summary>
    /// Writes to the pipe. A flush shows the bytes to the readers. A flush throws what keeps the pipe from going on, and so does
    /// <see cref="PipeWriter.CompleteAsync"/>, which waits for the file, too, if there is one.
    /// </summary>
    public PipeWriter Writer { get; }

    /// <summary>The first reader, from the beginning.</summary>
    public PipeReader Reader
    {
        get
        {
            lock (_gate)
            {
                return _reader ??= AddReaderLocked(0);
            }
        }
    }

    /// <summary>
    /// The number of bytes that were flushed. It shrinks if they cannot be written to the file: to the number of those that readers get
    /// before the error.
    /// </summary>
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

    /// <summary>Whether the pipe goes on in a file: more than <see cref="FileBufferingPipeOptions.MemoryThreshold"/> was written.</summary>
    public bool IsInFile => _spill is not null;

    internal string Folder { get; }

    /// <summary>How far readers may read.</summary>
    private long VisibleLocked => Math.Min(_flushed, Math.Max(_memoryEnd, _written));

    /// <summary>Opens another reader. Complete it when you are done, or dispose of the pipe.</summary>
    /// <param name="offset">The offset of its first byte. It may be one that is not written yet.</param>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="offset"/> is negative.</exception>
    /// <exception cref="InvalidOperationException"><see cref="FileBufferingPipeOptions.Keep"/> is not set.</exception>
    /// <exception cref="ObjectDisposedException">The pipe is disposed.</exception>
    public PipeReader OpenReader(long offset = 0)
    {
        ArgumentOutOfRangeException.ThrowIfNegative(offset);
        lock (_gate)
        {
            ThrowIfNotKeptLocked();
            return AddReaderLocked(offset);
        }
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

    /// <summary>
    /// Frees memory and file, whatever is under way: calls of the writer and of streams end with <see cref="ObjectDisposedException"/>,
    /// those of readers with <see cref="InvalidOperationException"/>.
    /// </summary>
    /// <remarks>
    /// Memory of the writer that its caller holds, and has not advanced over, is not reused, as after <see cref="FilePipeWriter.Abort"/>.
    /// Buffers that readers have returned go back to a caller's pool, as those of .NET's readers do; those of the library's own pool that a
    /// caller holds go to nobody else.
    /// </remarks>
    public void Dispose()
    {
        FilePipeReader[] readers;
        FileSegment? freed;
        FileSegment? held;
        lock (_gate)
        {
            if (_isDisposed)
            {
                return;
            }

            _isDisposed = true;
            readers = [.. _readers];

            // The caller of the writer may be writing there, until a flush has gone on in a file; after Complete, memory of its own pool is
            // not its any more.
            held = _spill is null && _callerHasRoom && !(_isWriterCompleted && _options.Pool is not null) ? _tail : null;
            freed = DropBelowLocked(long.MaxValue);
            if (_tail is { } tail && tail != held)
            {
                (tail.NextSegment, freed) = (freed, tail);
            }

            (_head, _tail) = (null, null);
        }

        _ = SegmentPool.Shared.Return(freed);
        _ = held?.TryUnpin();
        _spill?.Abort();
        Task ends = Task.WhenAll(readers.Select(static reader => reader.CompleteAsync().AsTask()));
        Wake();
        _ = ReleaseAsync(ends);
    }

    /// <summary>Disposes as <see cref="Dispose"/> does, and completes when memory and file are freed.</summary>
    public async ValueTask DisposeAsync()
    {
        Dispose();
        await _released.Task.ConfigureAwait(false);
    }

    /// <summary>Closes the file when nobody reads or writes it any more. Errors of a caller's memory pool are dropped.</summary>
    private async Task ReleaseAsync(Task readers)
    {
        const ConfigureAwaitOptions Suppressed = ConfigureAwaitOptions.SuppressThrowing;
        await readers.ConfigureAwait(Suppressed);
        await (_spill?.CompleteAsync().AsTask() ?? Task.CompletedTask).ConfigureAwait(Suppressed);
        Task<NamelessFile>? opening = _opening;
        if (opening is not null)
        {
            await ((Task)opening).ConfigureAwait(Suppressed);
        }

        if (opening is { IsCompletedSuccessfully: true })
        {
            // Closing a large file that has no name frees its blocks, which may take long.
            OpenedFile file = (await opening.ConfigureAwait(false)).Opened;
            _ = await WaitingThreads.Opens.RunAsync(() =>
            {
                file.Release(closeHandle: true);
                return true;
            }).ConfigureAwait(false);
        }

        _released.SetResult();
    }

    /// <summary>Goes on in the file, behind what was flushed.</summary>
    private void GoOnIn(NamelessFile file)
    {
        lock (_gate)
        {
            ThrowIfDisposedLocked();
            _file = file;
            _memoryEnd = _flushed;
            FilePipeWriterOptions options = new() { Offset = _memoryEnd, Pool = _options.Pool, WritesHere = true };
            _spill = FilePipeWriter.Create(new SpillFile(file.Opened, this), options, leaveOpen: true, isOpenedByPath: true, _writes);
        }
    }

    private FilePipeReader AddReaderLocked(long offset)
    {
        FilePipeReader reader = FilePipeReader.Create(
            new BufferView(this, _flushed), new FilePipeReaderOptions { Offset = offset, Pool = _options.Pool }, leaveOpen: true);
        _readers.Add(reader);
        return reader;
    }

    private void ThrowIfDisposedLocked() => ObjectDisposedException.ThrowIf(_isDisposed, this);

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
