using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelinesTests;

/// <summary>The system calls of the Unix back end, of which those that are made with O_DIRECT have a script by their offset.</summary>
internal sealed unsafe class DirectScript : UnixCalls
{
    private volatile bool _isDirect;
    private int _directReads;
    private int _directWrites;
    private int _bufferedWrites;

    /// <summary>Whether the file system has direct I/O.</summary>
    public bool HasDirect { get; init; } = true;

    /// <summary>Whether the kernel tells what direct I/O asks for.</summary>
    public bool TellsBlocks { get; init; } = true;

    /// <summary>
    /// For a read or a write at an offset: <see langword="null"/> for the real call, a negative errno, or the most bytes that it may move.
    /// May come from several threads.
    /// </summary>
    public Func<bool, long, long?>? OnDirect { get; init; }

    public int DirectReads => _directReads;

    public int DirectWrites => _directWrites;

    /// <summary>Those without O_DIRECT.</summary>
    public int BufferedWrites => _bufferedWrites;

    public FilePipeReader Read(string path, FilePipeReaderOptions options)
        => Direct.Open(
            () => FilePipeReader.Create(Open(path, FileMode.Open, FileAccess.Read), options, leaveOpen: false, isOpenedByPath: true));

    public FilePipeWriter Write(string path, FilePipeWriterOptions options)
        => Direct.Open(
            () => FilePipeWriter.Create(Open(path, FileMode.Create, FileAccess.Write), options, leaveOpen: false, isOpenedByPath: true));

    public FilePipeWriter Write(SafeFileHandle handle, FilePipeWriterOptions options)
        => FilePipeWriter.Create(
            new UnixFile(handle, null, FileProperties.Of(handle, null), this), options, leaveOpen: false, isOpenedByPath: false);

    public OpenedFile Open(string path, FileMode mode, FileAccess access)
    {
        SafeFileHandle handle = File.OpenHandle(path, mode, access, FileShare.ReadWrite);
        return new UnixFile(handle, path, FileProperties.Of(handle, path), this);
    }

    internal override long SetDirect(SafeFileHandle file, bool isDirect)
    {
        _isDirect = isDirect;
        return HasDirect ? base.SetDirect(file, isDirect) : -Libc.EINVAL;
    }

    internal override bool TryGetDirectBlocks(SafeFileHandle file, out int ofOffset, out int ofMemory)
    {
        bool isTold = base.TryGetDirectBlocks(file, out ofOffset, out ofMemory);
        return TellsBlocks && HasDirect && isTold;
    }

    internal override long Read(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
    {
        Interlocked.Increment(ref _directReads);
        return Scripted(isWrite: false, vectors, ref count, offset) ?? base.Read(file, vectors, count, offset, flags);
    }

    internal override long Write(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
    {
        Interlocked.Increment(ref _isDirect ? ref _directWrites : ref _bufferedWrites);
        return (_isDirect ? Scripted(isWrite: true, vectors, ref count, offset) : null) ?? base.Write(file, vectors, count, offset, flags);
    }

    private long? Scripted(bool isWrite, Libc.IoVector* vectors, ref int count, long offset)
    {
        long? answer = OnDirect?.Invoke(isWrite, offset);
        if (answer is null or <= 0)
        {
            return answer;
        }

        ScriptedCalls.Shorten(vectors, ref count, answer.Value);
        return null;
    }
}
