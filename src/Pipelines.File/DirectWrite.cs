using System.Buffers;
using System.Runtime.CompilerServices;
using Pipelines.File.Backends;

namespace Pipelines.File;

/// <summary>
/// Writes memory that somebody else keeps to a writer's file, past the writer's own memory and so without a copy. The caller of the writer uses it and waits for it, and the
/// memory stays as it is meanwhile.
/// </summary>
internal sealed class DirectWrite : IFileOperationOwner
{
    /// <summary>
    /// What is shorter is copied into the writer: it goes out behind the caller's back then, which saves more than the copy costs, bytes.
    /// </summary>
    private const int MinLength = 256 * 1024;

    /// <summary>Bytes of one write, at most, so that a cancellation is noticed.</summary>
    private const int MaxStep = 8 * 1024 * 1024;

    private readonly FilePipeWriter _destination;
    private readonly FileBackend _file;
    private readonly PooledCompletions<bool> _completions = new();

    // The wait of the write under way. Written before the back end has the operation, and read when it reports.
    private PooledCompletion<bool>? _pending;

    private DirectWrite(FilePipeWriter destination)
    {
        _destination = destination;
        _file = destination.FileBackend;
    }

    /// <summary>Whether it is worth it, and possible: no write may be left behind that never ends.</summary>
    internal static bool CanWrite(FilePipeWriter destination, long length)
        => length >= MinLength && destination.FileBackend is { CanSeek: true, EndsOperations: true };

    /// <summary>
    /// Flushes the writer and writes the content behind that, or as much of it as the system takes: an error is left to the ordinary way, which meets it again and
    /// makes it the writer's. Returns the bytes that are written.
    /// </summary>
    /// <param name="destination">The writer.</param>
    /// <param name="content">The memory.</param>
    /// <param name="cancellationToken">Ends it before the next of its writes, without an exception: the caller has to know how much is written.</param>
    internal static async ValueTask<long> WriteAsync(FilePipeWriter destination, ReadOnlySequence<byte> content, CancellationToken cancellationToken)
    {
        destination.BeginDirect();
        try
        {
            // Nothing of the writer's may be on its way.
            return FileCopy.GoesOn(await destination.FlushDirectAsync(cancellationToken).ConfigureAwait(false))
                ? await new DirectWrite(destination).WriteAsync(content, cancellationToken).ConfigureAwait(false)
                : 0;
        }
        finally
        {
            destination.EndDirect();
        }
    }

    bool IFileOperationOwner.OnCompleted(FileOperation operation)
    {
        _pending!.CompleteOnPool(true, null);
        return false;
    }

    private async ValueTask<long> WriteAsync(ReadOnlySequence<byte> content, CancellationToken cancellationToken)
    {
        long written = 0;
        FileOperation operation = _file.Rent(this);
        try
        {
            while (!content.IsEmpty && !cancellationToken.IsCancellationRequested)
            {
                operation.Begin(FileOperationKind.Write, _destination.Skip(0));
                AddTo(operation, content);
                operation.Pin();
                await PerformAsync(operation).ConfigureAwait(false);
                long transferred = operation.Transferred;
                operation.Clear();
                if (operation.Error is not null || (transferred == 0 && !operation.IsCanceled))
                {
                    break;
                }

                FilePipeMetrics.Wrote(writes: 1, transferred);
                _ = _destination.Skip(transferred);
                written += transferred;
                content = content.Slice(transferred);
            }
        }
        finally
        {
            operation.Return();
        }

        return written;
    }

    private void AddTo(FileOperation operation, ReadOnlySequence<byte> content)
    {
        foreach (ReadOnlyMemory<byte> memory in content)
        {
            if (operation.BufferCount == _file.MaxBuffersPerOperation || operation.Length + memory.Length > MaxStep)
            {
                break;
            }

            operation.Add(memory, address: 0);
        }

        if (operation.BufferCount == 0)
        {
            // One segment that is larger than a step.
            operation.Add(content.First[..MaxStep], address: 0);
        }
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask PerformAsync(FileOperation operation)
    {
        _pending = _completions.Rent();
        ValueTask<bool> reported = _pending.Task;
        _file.Start(operation);
        await reported.ConfigureAwait(false);
    }
}
