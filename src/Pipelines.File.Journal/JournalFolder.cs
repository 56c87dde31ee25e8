namespace Pipelines.File;

/// <summary>The folder of a journal: its names on the device, and the lock of its one writer.</summary>
internal static class JournalFolder
{
    private const int LockTries = 100;
    private const int LockMilliseconds = 10;

    /// <summary>Makes the folder and those above it, and puts their names on the device.</summary>
    internal static void Make(string folder)
    {
        Stack<string> missing = new();
        for (string? path = folder; path is not null && !Directory.Exists(path); path = Path.GetDirectoryName(path))
        {
            missing.Push(path);
        }

        Directory.CreateDirectory(folder);
        foreach (string path in missing)
        {
            FileSync.FlushFolder(Path.GetDirectoryName(path)!);
        }
    }

    /// <summary>Takes the lock that a writer has as long as it runs.</summary>
    /// <exception cref="IOException">Another writer has it, or nobody can have it there.</exception>
    internal static ValueTask<FileLock> LockAsync(string folder, CancellationToken cancellationToken)
        => LockAsync(
            Path.Combine(folder, JournalFormat.LockName),
            $"The journal is open for writing already, in this process or another one: '{folder}'", cancellationToken);

    /// <summary>Takes a lock.</summary>
    /// <param name="path">The file.</param>
    /// <param name="held">The message of the exception if somebody has it.</param>
    /// <param name="cancellationToken">Ends the waiting.</param>
    internal static async ValueTask<FileLock> LockAsync(string path, string held, CancellationToken cancellationToken)
    {
        for (int tries = 1; ; tries++)
        {
            if (FileLock.TryAcquire(path) is { } taken)
            {
                return taken;
            }

            if (tries == LockTries)
            {
                throw new IOException(held);
            }

            // A process that was just forked has the lock of a writer that is gone until it runs its own program.
            await Task.Delay(LockMilliseconds, cancellationToken).ConfigureAwait(false);
        }
    }

    /// <summary>Before a name in the folder is made or removed: it may be the folder of another journal by now.</summary>
    /// <exception cref="IOException">The path of the lock means another file.</exception>
    internal static void ThrowIfNotInPlace(FileLock fileLock)
    {
        if (!fileLock.IsInPlace)
        {
            throw NotInPlace(fileLock);
        }
    }

    /// <summary>
    /// Removes the file that was to become the next segment, unless the folder is another journal's by now: the next opening does it.
    /// </summary>
    internal static void DeleteNext(string folder, FileLock fileLock)
    {
        if (fileLock.IsInPlace)
        {
            System.IO.File.Delete(Path.Combine(folder, JournalFormat.NextName));
        }
    }

    internal static IOException NotInPlace(FileLock fileLock)
        => new("The journal's lock is not what it was: somebody has removed the file, or has moved or replaced the folder, and another "
            + $"process may write there. '{fileLock.Path}'");
}
