using System.Collections.Concurrent;
using Pipelines.File.Writing;

namespace FilePipelines.Tests;

/// <summary>
/// The system calls of the Unix back end with a script between: what a call answers instead, how much it may move, or what happens before
/// it.
/// </summary>
internal sealed unsafe class ScriptedCalls : UnixCalls
{
    private int _reads;
    private int _readsNoWait;
    private int _writes;
    private long _bytesWritten;
    private int _syncs;
    private int _closes;

    /// <summary>Skips the test that makes one where there are no such calls.</summary>
    public ScriptedCalls() => Assert.SkipWhen(OperatingSystem.IsWindows(), "It scripts the Unix system calls.");

    /// <summary>
    /// By the number of the call from 1: <see langword="null"/> for the real call, a negative errno, or the most bytes that it may move.
    /// </summary>
    public Func<int, long?>? OnRead { get; init; }

    public Func<int, long?>? OnReadNoWait
    {
        get;
        init
        {
            Assert.SkipUnless(OperatingSystem.IsLinux(), "Only Linux has a read that does not wait.");
            field = value;
        }
    }

    public Func<int, long?>? OnWrite { get; init; }

    /// <summary>Whether the file knows pwritev2(2) with RWF_NOWAIT. Where not, that call is answered so, and not counted.</summary>
    public bool KnowsWriteNoWait { get; init; } = true;

    public Func<int, long?>? OnSync { get; init; }

    /// <summary>What is told of the file system after a sync, a negative errno.</summary>
    public Func<int, long?>? OnTellFailure { get; init; }

    /// <summary>What closing a duplicate answers, a negative errno.</summary>
    public Func<int, long?>? OnCloseCopy { get; init; }

    /// <summary>By the offset: how many bytes from there on are in the page cache, or a negative errno.</summary>
    public Func<long, long?>? OnCountCached { get; init; }

    /// <summary>By whether it waits: what sync_file_range(2) answers, a negative errno.</summary>
    public Func<bool, long?>? OnWriteCached { get; init; }

    /// <summary>Which short writes the caller's thread makes itself: none, because a script may wait for the caller.</summary>
    public FastWrites Inline { get; init; } = StoppedClock.NoInlineWrites();

    /// <summary>
    /// What was taken out of the page cache ("drop"), began to be written ("write") or was waited for ("wait"), and the offset, in order.
    /// </summary>
    public ConcurrentQueue<(string Call, long Offset)> CacheCalls { get; } = new();

    /// <summary>The type of the file system that the files are on, as if; <see langword="null"/>: the real one.</summary>
    public long? FileSystem { get; init; }

    /// <summary>The length of a followed file at a look, as if; <see langword="null"/>: the real one.</summary>
    public Func<long?>? LengthAtLook { get; init; }

    public int Reads => _reads;

    /// <summary>How often a duplicate was closed, to hear of lost bytes.</summary>
    public int Closes => _closes;

    public int ReadsNoWait => _readsNoWait;

    public int Writes => _writes;

    public long BytesWritten => Interlocked.Read(ref _bytesWritten);

    public int Syncs => _syncs;

    public FilePipeReader Read(string path, FilePipeReaderOptions? options = null)
        => FilePipeReader.Create(Backend(path, FileMode.Open, FileAccess.Read), options ?? new(), leaveOpen: false);

    public FilePipeWriter Write(string path, FilePipeWriterOptions? options = null)
        => FilePipeWriter.Create(
            Backend(path, FileMode.Create, FileAccess.Write), options ?? new(), leaveOpen: false, isOpenedByPath: true, Inline);

    /// <summary>A writer to a handle of the caller's, whose path nobody tells.</summary>
    public FilePipeWriter Write(SafeFileHandle handle, FilePipeWriterOptions? options = null)
        => FilePipeWriter.Create(
            new UnixFile(handle, null, FileProperties.Of(handle, null), this), options ?? new(), leaveOpen: false, isOpenedByPath: false,
            Inline);

    /// <inheritdoc cref="Write(SafeFileHandle, FilePipeWriterOptions?)"/>
    public FilePipeReader Read(SafeFileHandle handle, FilePipeReaderOptions? options = null)
        => FilePipeReader.Create(new UnixFile(handle, null, FileProperties.Of(handle, null), this), options ?? new(), leaveOpen: false);

    // A script's file knows RWF_NOWAIT wherever it is: where its file system does not (tmpfs, FUSE), the plain call reads.
    internal override long Read(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
    {
        long? scripted = flags != 0 ? Scripted(OnReadNoWait, ref _readsNoWait, vectors, ref count)
            : Scripted(OnRead, ref _reads, vectors, ref count);
        long read = scripted ?? base.Read(file, vectors, count, offset, flags);
        return scripted is null && flags != 0 && read == -Libc.EOPNOTSUPP ? base.Read(file, vectors, count, offset, 0) : read;
    }

    internal override long Write(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
        => flags == Libc.RWF_NOWAIT && !KnowsWriteNoWait ? -Libc.EOPNOTSUPP
            : Scripted(OnWrite, ref _writes, vectors, ref count) ?? Count(base.Write(file, vectors, count, offset, flags));

    internal override long CountCached(SafeFileHandle file, long offset, long length)
        => OnCountCached?.Invoke(offset) ?? base.CountCached(file, offset, length);

    internal override void DropCached(SafeFileHandle file, long offset, long length)
    {
        CacheCalls.Enqueue(("drop", offset));
        base.DropCached(file, offset, length);
    }

    internal override long WriteCached(SafeFileHandle file, long offset, long length, bool waits)
    {
        CacheCalls.Enqueue((waits ? "wait" : "write", offset));
        return OnWriteCached?.Invoke(waits) ?? base.WriteCached(file, offset, length, waits);
    }

    internal override Pipelines.File.FileStatus? AskStatus(SafeFileHandle file)
        => base.AskStatus(file) is { } status && LengthAtLook?.Invoke() is { } length ? status with { Length = length }
            : base.AskStatus(file);

    internal override long Sync(SafeFileHandle file)
    {
        int call = Interlocked.Increment(ref _syncs);
        long? answer = OnSync?.Invoke(call);
        return answer is < 0 ? answer.Value : base.Sync(file);
    }

    internal override long TellFailure(SafeFileHandle file, long fileSystem)
        => OnTellFailure?.Invoke(_syncs) ?? base.TellFailure(file, fileSystem);

    internal override bool TellsAtClose(in FileProperties properties) => OnCloseCopy is not null || base.TellsAtClose(properties);

    internal override long CloseCopy(SafeFileHandle file)
    {
        int call = Interlocked.Increment(ref _closes);
        return OnCloseCopy?.Invoke(call) ?? base.CloseCopy(file);
    }

    private long Count(long written)
    {
        Interlocked.Add(ref _bytesWritten, Math.Max(0, written));
        return written;
    }

    private static long? Scripted(Func<int, long?>? script, ref int calls, Libc.IoVector* vectors, ref int count)
    {
        int call = Interlocked.Increment(ref calls);
        long? answer = script?.Invoke(call);
        if (answer is null or <= 0)
        {
            return answer;
        }

        Shorten(vectors, ref count, answer.Value);
        return null;
    }

    /// <summary>A short call is the real one with less memory.</summary>
    internal static void Shorten(Libc.IoVector* vectors, ref int count, long length)
    {
        for (int i = 0; i < count; i++)
        {
            vectors[i].Length = (nint)Math.Min(vectors[i].Length, length);
            length -= vectors[i].Length;
            if (length == 0)
            {
                count = i + 1;
            }
        }
    }

    public UnixFile Backend(string path, FileMode mode, FileAccess access)
    {
        SafeFileHandle handle = File.OpenHandle(path, mode, access, FileShare.ReadWrite);
        FileProperties properties = FileProperties.Of(handle, path);
        return new UnixFile(handle, path, FileSystem is { } type ? properties with { FileSystem = type } : properties, this);
    }
}
