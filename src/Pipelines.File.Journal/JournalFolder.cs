using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>The folder of a journal: its names on the device, and the lock of its one writer.</summary>
internal static class JournalFolder
{
    private const int LockTries = 100;
    private const int LockMilliseconds = 10;

    // EAGAIN of Linux and of macOS, ERROR_SHARING_VIOLATION: what a lock that somebody has answers.
    private static readonly int[] s_locked = [11, 35, unchecked((int)0x80070020)];

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
    /// <exception cref="IOException">Another writer has it.</exception>
    internal static async ValueTask<SafeFileHandle> LockAsync(string folder, CancellationToken cancellationToken)
    {
        for (int tries = 1; ; tries++)
        {
            try
            {
                return System.IO.File.OpenHandle(
                    Path.Combine(folder, JournalFormat.LockName), FileMode.OpenOrCreate, FileAccess.ReadWrite, FileShare.None);
            }
            catch (IOException e) when (s_locked.Contains(e.HResult))
            {
                if (tries == LockTries)
                {
                    throw new IOException($"The journal is open for writing already, in this process or another one: '{folder}'", e);
                }
            }

            // A process that was just forked has the lock of a writer that is gone until it runs its own program.
            await Task.Delay(LockMilliseconds, cancellationToken).ConfigureAwait(false);
        }
    }
}
