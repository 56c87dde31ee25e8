using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.Backends;
using Pipelines.File.Interop;

namespace FilePipelinesTests;

/// <summary>The system calls of the Unix back end with a script between: what a call answers instead, how much it may move, or what happens before it.</summary>
internal sealed unsafe class ScriptedCalls : UnixCalls
{
    private int _reads;
    private int _readsNoWait;
    private int _writes;
    private long _bytesWritten;
    private int _syncs;
    private int _copies;

    /// <summary>By the number of the call from 1: <see langword="null"/> for the real call, a negative errno, or the most bytes that it may move.</summary>
    public Func<int, long?>? OnRead { get; init; }

    public Func<int, long?>? OnReadNoWait { get; init; }

    public Func<int, long?>? OnWrite { get; init; }

    public Func<int, long?>? OnSync { get; init; }

    public Func<int, long?>? OnCopy { get; init; }

    public int Reads => _reads;

    public int ReadsNoWait => _readsNoWait;

    public int Writes => _writes;

    public long BytesWritten => Interlocked.Read(ref _bytesWritten);

    public int Syncs => _syncs;

    public int Copies => _copies;

    public FilePipeReader Read(string path, FilePipeReaderOptions? options = null)
        => FilePipeReader.Create(Backend(path, FileMode.Open, FileAccess.Read), options ?? new(), leaveOpen: false);

    public FilePipeWriter Write(string path, FilePipeWriterOptions? options = null)
        => FilePipeWriter.Create(Backend(path, FileMode.Create, FileAccess.Write), options ?? new(), leaveOpen: false, isOpenedByPath: true);

    internal override long Read(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset)
        => Scripted(OnRead, ref _reads, vectors, ref count) ?? base.Read(file, vectors, count, offset);

    internal override long ReadNoWait(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset)
        => Scripted(OnReadNoWait, ref _readsNoWait, vectors, ref count) ?? base.ReadNoWait(file, vectors, count, offset);

    internal override long Write(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset)
        => Scripted(OnWrite, ref _writes, vectors, ref count) ?? Count(base.Write(file, vectors, count, offset));

    internal override long WriteNoWait(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset)
        => Scripted(OnWrite, ref _writes, vectors, ref count) ?? base.WriteNoWait(file, vectors, count, offset);

    internal override long Sync(SafeFileHandle file)
    {
        int call = Interlocked.Increment(ref _syncs);
        long? answer = OnSync?.Invoke(call);
        return answer is < 0 ? answer.Value : base.Sync(file);
    }

    internal override long Copy(SafeFileHandle source, long sourceOffset, SafeFileHandle destination, long destinationOffset, long length)
    {
        int call = Interlocked.Increment(ref _copies);
        long? answer = OnCopy?.Invoke(call);
        return answer is <= 0 ? answer.Value : base.Copy(source, sourceOffset, destination, destinationOffset, Math.Min(length, answer ?? length));
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

        // A short call: the real one, with less memory.
        long left = answer.Value;
        for (int i = 0; i < count; i++)
        {
            vectors[i].Length = (nint)Math.Min(vectors[i].Length, left);
            left -= vectors[i].Length;
            if (left == 0)
            {
                count = i + 1;
            }
        }

        return null;
    }

    private ThreadPoolBackend Backend(string path, FileMode mode, FileAccess access)
    {
        SafeFileHandle handle = File.OpenHandle(path, mode, access, FileShare.ReadWrite);
        return new ThreadPoolBackend(handle, path, FileProperties.Of(handle, path), this);
    }
}
