using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelines.TwoCallers.Tests;

/// <summary>
/// A real file, under the wait for its growth. A <see cref="FollowedOrder"/> decides which reads are handed over, and when those are
/// performed and reported.
/// </summary>
internal sealed class FollowedBackend(FollowedOrder order, SafeFileHandle handle, string path, FilePipeBackend kind)
    : OpenedFile(handle, path, FileProperties.Of(handle, path))
{
    private volatile FileRequest? _started;

    /// <summary>A read is to be performed by <see cref="Perform"/>.</summary>
    internal bool HasStarted => _started is not null;

    internal int Releases { get; private set; }

    internal int OperationsOut { get; private set; }

    internal override FilePipeBackend Kind => kind;

    internal override int MaxBuffersPerOperation => 16;

    internal override FileRequest Rent()
    {
        OperationsOut++;
        return new FileRequest();
    }

    internal override void Return(FileRequest request)
    {
        OperationsOut--;
        request.Clear();
    }

    private protected override bool TryPerformCore(FileRequest operation, bool mayWait)
    {
        order.Within("within the call that does not wait");
        if (order.HandsOver())
        {
            return false;
        }

        Read(operation);
        order.Within("after the call that does not wait");
        return true;
    }

    internal override void PerformElsewhere(FileRequest operation)
    {
        order.Require(_started is null, "one operation is under way at a time");
        _started = operation;
        order.Within("within Start");
    }

    internal override void Cancel(FileRequest request)
    {
        // A read of a file ends by itself.
    }

    internal override void Release(bool closeHandle)
    {
        order.Require(_started is null && OperationsOut == 0, "the file is closed while an operation is under way");
        Releases++;
        base.Release(closeHandle);
    }

    /// <summary>A waiting thread has taken it from its queue: it waits there for the order.</summary>
    internal override void Perform(FileRequest request) => _started = request;

    /// <summary>Performs what was started, and reports it.</summary>
    internal void Perform()
    {
        FileRequest operation = _started!;
        _started = null;
        Read(operation);
        order.Within("between a read and its report");
        operation.Complete();
    }

    private void Read(FileRequest operation)
    {
        order.Require(operation.Kind == FileRequestKind.Read && operation.Length > 0, "each operation asks for bytes");
        Span<byte> bytes = new byte[operation.Length];
        int count = RandomAccess.Read(Handle, bytes, operation.Offset);
        int moved = 0;
        foreach (TransferBuffer buffer in operation.Buffers)
        {
            int length = Math.Min(count - moved, buffer.Memory.Length);
            bytes.Slice(moved, length).CopyTo(System.Runtime.InteropServices.MemoryMarshal.AsMemory(buffer.Memory).Span);
            moved += length;
        }

        operation.Finish(moved);
    }
}
