using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// Opens a file on a waiting thread. A FIFO whose other side is missing, and a file that is waited for, is tried again and again; no thread
/// waits in between. A cancellation ends the wait at once; a file that is opened all the same is closed.
/// </summary>
internal static class AsyncOpening
{
    /// <summary>The interval between two tries to open a FIFO.</summary>
    private const int TryMilliseconds = 20;

    /// <param name="fifo">How the file is opened if it is a FIFO; <see langword="null"/>: as any other file.</param>
    /// <param name="open">
    /// Opens the file by its path, or takes the FIFO that is open. Called on a waiting thread. Its exception is the caller's.
    /// </param>
    /// <param name="close">Closes a result that nobody waits for any more.</param>
    /// <param name="cancellationToken">Ends the wait.</param>
    /// <param name="missing">
    /// When to try again if there is no file of this full path; <see langword="null"/>: not at all. An assembly that cannot be loaded is
    /// reported as a missing file, too, with its name; one that was removed since it was opened has none.
    /// </param>
    internal static async ValueTask<T> OpenAsync<T>(FifoOpening? fifo, Func<OpenedFile?, T> open, Action<T> close,
        CancellationToken cancellationToken, (string Path, TimeSpan Interval)? missing = null)
        where T : class
    {
        cancellationToken.ThrowIfCancellationRequested();
        Task<T> opening = TryUntilOpenAsync(fifo, open, missing, cancellationToken);
        try
        {
            return await opening.WaitAsync(cancellationToken).ConfigureAwait(false);
        }
        catch (OperationCanceledException)
        {
            _ = CloseAsync();
            throw;
        }

        async Task CloseAsync()
        {
            await ((Task)opening).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
            if (opening.IsCompletedSuccessfully)
            {
                close(opening.Result);
            }
        }
    }

    private static async Task<T> TryUntilOpenAsync<T>(FifoOpening? fifo, Func<OpenedFile?, T> open,
        (string Path, TimeSpan Interval)? missing, CancellationToken cancellationToken)
        where T : class
    {
        using (fifo)
        {
            while (true)
            {
                TimeSpan wait = TimeSpan.FromMilliseconds(TryMilliseconds);
                try
                {
                    if (await WaitingThreads.Opens.RunAsync(Try).ConfigureAwait(false) is { } opened)
                    {
                        return opened;
                    }
                }
                catch (Exception e) when (e is DirectoryNotFoundException or FileNotFoundException && missing is { } file
                    && (e is not FileNotFoundException { FileName: { } name } || name == file.Path))
                {
                    wait = missing.Value.Interval;
                }

                await Task.Delay(wait, cancellationToken).ConfigureAwait(false);
            }
        }

        T? Try()
        {
            // A call that was canceled while it was queued opens nothing: that could empty a file.
            cancellationToken.ThrowIfCancellationRequested();
            return !OperatingSystem.IsLinux() || fifo is not { IsForFifo: true } ? open(null)
                : fifo.TryOpen() is { } side ? open(side) : null;
        }
    }
}
