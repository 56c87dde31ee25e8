using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>The folder of a journal: its names on the device, and the lock of its one writer.</summary>
internal static partial class JournalFolder
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
            Sync(Path.GetDirectoryName(path)!);
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

    /// <summary>Puts the names in the folder on the device (fsync(2)). On Windows the file system's journal does that.</summary>
    /// <exception cref="IOException">The system cannot do it.</exception>
    internal static void Sync(string folder)
    {
        if (OperatingSystem.IsWindows())
        {
            return;
        }

        int descriptor = Open(folder, OpenCloseOnExec);
        if (descriptor < 0)
        {
            throw Failed(folder);
        }

        using SafeFileHandle handle = new(descriptor, ownsHandle: true);
        while (SyncFile(descriptor) < 0)
        {
            const int EINTR = 4;
            const int EINVAL = 22;
            int error = Marshal.GetLastPInvokeError();
            if (error == EINVAL)
            {
                // File systems that cannot sync a folder do not need it.
                return;
            }

            if (error != EINTR)
            {
                throw Failed(folder);
            }
        }
    }

    private static int OpenCloseOnExec => OperatingSystem.IsMacOS() ? 0x1000000 : 0x80000;

    private static IOException Failed(string folder)
    {
        int error = Marshal.GetLastPInvokeError();
        return new IOException($"{Marshal.GetPInvokeErrorMessage(error)} : the folder could not be synced: '{folder}'", error);
    }

    [LibraryImport("libc", EntryPoint = "open", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int Open(string path, int flags);

    [LibraryImport("libc", EntryPoint = "fsync", SetLastError = true)]
    private static partial int SyncFile(int descriptor);
}
