using System.Security.Cryptography;
using Pipelines.File.IO;
using Pipelines.File.Replace;

namespace Pipelines.File.Buffering;

/// <summary>A new file that no program finds, and that is gone when it is closed, also by a kill.</summary>
/// <param name="Opened">The open file.</param>
/// <param name="CanBeNamed">Whether linkat(2) can give it a name: it never had one.</param>
internal readonly record struct NamelessFile(OpenedFile Opened, bool CanBeNamed)
{
    private const uint OwnerOnly = 0x180; // 0600

    /// <summary>Makes the file. May wait, so it is called on a thread that may.</summary>
    /// <exception cref="IOException">It cannot be made; the message says where, and why.</exception>
    internal static NamelessFile Make(string folder, UnixCalls calls)
    {
        SafeFileHandle? handle = null;
        try
        {
            handle = OperatingSystem.IsLinux() ? MakeOnLinux(folder, calls, out bool canBeNamed) : MakeByRuntime(folder, out canBeNamed);
            return new NamelessFile(FileOpening.Choose(FilePipeBackend.Auto, handle, folder, calls: calls), canBeNamed);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            handle?.Dispose();
            throw new IOException($"The pipe cannot go on in a file in '{folder}': {e.Message}", e) { HResult = e.HResult };
        }
    }

    private static string NewPath(string folder)
        => Path.Combine(folder, ReplacementFile.TemporaryPrefix + RandomNumberGenerator.GetHexString(16, lowercase: true));

    [SupportedOSPlatform("linux")]
    private static SafeFileHandle MakeOnLinux(string folder, UnixCalls calls, out bool canBeNamed)
    {
        string path = NewPath(folder);
        UnixName name = UnixName.Of(path);
        long descriptor = calls.MakeNameless(name, 0, OwnerOnly);
        canBeNamed = descriptor >= 0;
        if (!canBeNamed)
        {
            // Whatever the reason is, this call works or tells it.
            descriptor = calls.MakeNew(name, 0, OwnerOnly);
            if (descriptor < 0)
            {
                throw FileErrors.OfNaming((int)-descriptor, path);
            }

            _ = calls.Unlink(name);
        }

        return new SafeFileHandle((nint)descriptor, ownsHandle: true);
    }

    private static SafeFileHandle MakeByRuntime(string folder, out bool canBeNamed)
    {
        canBeNamed = false;
        string path = NewPath(folder);

        // Not for overlapped I/O: one overlapped file makes one call at a time, and here readers and the pipe make theirs at once.
        SafeFileHandle handle = new FileToOpen(path, FileMode.CreateNew, FileAccess.ReadWrite, FileShare.Delete,
            OperatingSystem.IsWindows() ? FileOptions.DeleteOnClose : FileOptions.None)
        {
            CreateMode = (UnixFileMode)OwnerOnly,
        }.OpenHandle();
        if (!OperatingSystem.IsWindows())
        {
            System.IO.File.Delete(path);
        }

        return handle;
    }
}
