using System.Runtime.CompilerServices;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File.Backends;

/// <summary>
/// The portable back end: any handle on any system, through <see cref="RandomAccess"/>, one buffer a call. The runtime takes handles that cannot seek, too, and
/// ignores the offset there. A blocked read cannot be given up; its owner stops waiting for it instead.
/// </summary>
internal sealed class RandomAccessBackend : FileBackend
{
    internal RandomAccessBackend(SafeFileHandle handle, string? path, FileShape shape)
        : base(handle, path, shape)
    {
    }

    internal override FilePipeBackend Kind => FilePipeBackend.ThreadPool;

    internal override int MaxBuffersPerOperation => 1;

    internal override bool TryPerform(FileOperation operation) => false;

    internal override void Start(FileOperation operation)
    {
        FilePipeMetrics.HandedOver(operation.Kind);
        _ = PerformAsync(operation);
    }

    // It allocates one task for as long as it goes on; no exception leaves it.
    private async Task PerformAsync(FileOperation operation)
    {
        // Never on the starter's stack: its continuations are not the starter's to run.
        await Task.CompletedTask.ConfigureAwait(ConfigureAwaitOptions.ForceYielding);
        do
        {
            try
            {
                operation.Finish(await MoveAsync(operation).ConfigureAwait(false));
            }
            catch (Exception e) when (e is IOException or UnauthorizedAccessException or ObjectDisposedException or NotSupportedException or ArgumentException or OperationCanceledException)
            {
                operation.Finish(FileErrors.WithPath(e, Path));
            }
        }
        while (operation.Owner!.OnCompleted(operation));
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<long> MoveAsync(FileOperation operation)
    {
        switch (operation.Kind)
        {
            case FileOperationKind.Read:
                return await RandomAccess.ReadAsync(Handle, System.Runtime.InteropServices.MemoryMarshal.AsMemory(operation.FirstBuffer), operation.Offset).ConfigureAwait(false);
            case FileOperationKind.Write:
                ReadOnlyMemory<byte> first = operation.FirstBuffer;
                await RandomAccess.WriteAsync(Handle, first, operation.Offset).ConfigureAwait(false);
                return first.Length;
            case FileOperationKind.Sync:
                RandomAccess.FlushToDisk(Handle);
                return 0;
            default:
                throw new NotSupportedException();
        }
    }
}
