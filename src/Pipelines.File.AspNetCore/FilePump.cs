using System.IO.Pipelines;
using Pipelines.File.Backends;

namespace Pipelines.File.AspNetCore;

/// <summary>Reads one open file, in order, into the memory of a writer. Used by one caller at a time, which waits for every read.</summary>
internal sealed class FilePump : IFileOperationOwner, IDisposable
{
    private readonly FileBackend _file;
    private readonly FileOperation _operation;
    private long _offset;

    // The wait for a read that was handed over; set before the start, read by whoever reports it.
    private PooledCompletion<long>? _pending;

    internal FilePump(FileBackend file, long offset)
    {
        _file = file;
        _offset = offset;
        _operation = FileOperation.Rent(this);
        _operation.Kind = FileOperationKind.Read;
    }

    /// <summary>Reads once, at most <paramref name="count"/> bytes, and advances the writer over them. 0: the end of the file.</summary>
    internal ValueTask<int> ReadAsync(PipeWriter writer, int count)
    {
        Memory<byte> memory = writer.GetMemory(count);
        _operation.Offset = _offset;
        _operation.Add(memory.Length > count ? memory[..count] : memory, address: 0);
        if (!_file.TryPerform(_operation))
        {
            return WaitAsync(writer);
        }

        FilePipeMetrics.ReadInline();
        return new ValueTask<int>(Take(writer));
    }

    /// <summary>Closes the file. No read is pending.</summary>
    public void Dispose()
    {
        _operation.Return();
        _file.Release(closeHandle: true);
    }

    bool IFileOperationOwner.OnCompleted(FileOperation operation)
    {
        _pending!.Complete(0, null, mayRunInline: true);
        return false;
    }

    private async ValueTask<int> WaitAsync(PipeWriter writer)
    {
        do
        {
            _pending ??= new PooledCompletion<long>(scheduler: null, useSynchronizationContext: false, static _ => { });
            ValueTask<long> reported = _pending.Task;
            _file.Start(_operation);
            await reported.ConfigureAwait(false);
        }
        while (_operation.IsCanceled); // A cancellation of an earlier use of the pooled operation, come too late.

        return Take(writer);
    }

    private int Take(PipeWriter writer)
    {
        int read = (int)_operation.Transferred;
        Exception? error = _operation.Error;
        _operation.Clear();
        if (error is not null)
        {
            throw error;
        }

        FilePipeMetrics.Read(read);
        writer.Advance(read);
        _offset += read;
        return read;
    }
}
