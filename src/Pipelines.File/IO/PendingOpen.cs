using Microsoft.Win32.SafeHandles;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>Opens a file for a caller who does not wait in place: on a waiting thread, which a FIFO without its other side does not hold between two tries.</summary>
internal static class PendingOpen
{
    /// <summary>A cancellation ends the wait at once; what is opened all the same is closed again.</summary>
    /// <typeparam name="T">The reader or writer that is put on the file.</typeparam>
    /// <param name="path">The whole path.</param>
    /// <param name="fifo">How it is opened if it turns out to be a FIFO; <see langword="null"/>: as any other file.</param>
    /// <param name="open">Opens the file by its path, or takes the FIFO that is open; on a waiting thread. Throws what the caller is to get.</param>
    /// <param name="close">Closes what nobody waits for any more.</param>
    /// <param name="cancellationToken">Ends the wait.</param>
    internal static async ValueTask<T> StartAsync<T>(string path, FifoOpening? fifo, Func<SafeFileHandle?, T> open, Action<T> close, CancellationToken cancellationToken)
        where T : class
    {
        cancellationToken.ThrowIfCancellationRequested();
        Task<T> opening = OpenAsync(path, fifo, open, cancellationToken);
        try
        {
            return await opening.WaitAsync(cancellationToken).ConfigureAwait(false);
        }
        catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
        {
            _ = CloseAsync(opening, close);
            throw;
        }
    }

    private static async Task CloseAsync<T>(Task<T> opening, Action<T> close)
    {
        // Nobody is told of an error any more.
        await ((Task)opening).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        if (opening.IsCompletedSuccessfully)
        {
            close(opening.Result);
        }
    }

    private static async Task<T> OpenAsync<T>(string path, FifoOpening? fifo, Func<SafeFileHandle?, T> open, CancellationToken cancellationToken)
        where T : class
    {
        using (fifo)
        {
            while (true)
            {
                if (await AwaitedCall<T?>.RunAsync(WaitKind.Open, () => TryOpen(path, fifo, open, cancellationToken)).ConfigureAwait(false) is { } opened)
                {
                    return opened;
                }

                await Task.Delay(fifo!.Pause, cancellationToken).ConfigureAwait(false);
            }
        }
    }

    /// <summary><see langword="null"/>: the FIFO's other side is not there yet.</summary>
    private static T? TryOpen<T>(string path, FifoOpening? fifo, Func<SafeFileHandle?, T> open, CancellationToken cancellationToken)
        where T : class
    {
        cancellationToken.ThrowIfCancellationRequested();
        if (fifo is null || !(fifo.Handle is not null || FifoOpening.IsFifo(path)))
        {
            return open(null);
        }

        SafeFileHandle? side = fifo.TryOpen(out bool isForOrdinaryWay);
        return side is not null || isForOrdinaryWay ? open(side) : null;
    }
}
