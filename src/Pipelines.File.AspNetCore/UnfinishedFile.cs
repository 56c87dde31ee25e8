using System.Globalization;
using System.Runtime.InteropServices;
using System.Security.Cryptography;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.Interop;

namespace Pipelines.File.AspNetCore;

/// <summary>A file that is written under another name beside its own, and gets its own when it is whole. Finished or abandoned by its one caller, once.</summary>
internal sealed class UnfinishedFile
{
    private readonly string _path;
    private readonly string _temporaryPath;
    private readonly SafeFileHandle _handle;

    private UnfinishedFile(string path, string temporaryPath, SafeFileHandle handle)
    {
        _path = path;
        _temporaryPath = temporaryPath;
        _handle = handle;

        // Open until the file has its name: what is synced is the file that was written.
        Writer = FilePipeWriter.Create(handle, new FilePipeWriterOptions { LeaveOpen = true });
    }

    internal FilePipeWriter Writer { get; }

    internal static UnfinishedFile Create(string path)
    {
        string fullPath = Path.GetFullPath(path);
        string folder = Path.GetDirectoryName(fullPath) ?? throw new UnauthorizedAccessException($"This is no file: '{path}'");

        // Of its own length, as the final name may be as long as a name can be.
        string temporaryPath = Path.Combine(folder, $".{RandomNumberGenerator.GetHexString(16, lowercase: true)}.upload");
        return new UnfinishedFile(fullPath, temporaryPath, System.IO.File.OpenHandle(temporaryPath, FileMode.CreateNew, FileAccess.Write, FileShare.Read));
    }

    /// <summary>Writes out everything and gives the file its name. Whatever throws, <see cref="AbandonAsync"/> is still to be called.</summary>
    internal async Task FinishAsync(bool overwrite, bool durable)
    {
        await Writer.CompleteAsync().ConfigureAwait(false);
        if (durable)
        {
            await Task.Run(() => RandomAccess.FlushToDisk(_handle)).ConfigureAwait(false);
        }

        _handle.Dispose();
        try
        {
            System.IO.File.Move(_temporaryPath, _path, overwrite);
        }
        catch (IOException e) when (!overwrite && FileExistsException.Says(e))
        {
            throw FileExistsException.At(_path, e);
        }

        if (durable && OperatingSystem.IsLinux())
        {
            await Task.Run(SyncFolder).ConfigureAwait(false);
        }
    }

    /// <summary>Leaves nothing behind.</summary>
    internal async Task AbandonAsync(Exception reason)
    {
        try
        {
            await Writer.CompleteAsync(reason).ConfigureAwait(false);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // What could not be written is not wanted any more; the reason is what the caller throws.
        }

        _handle.Dispose();
        try
        {
            System.IO.File.Delete(_temporaryPath);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // As above.
        }
    }

    /// <summary>The new name is in the folder, which is a file of its own: fsync(2).</summary>
    private void SyncFolder()
    {
        string folder = Path.GetDirectoryName(_path)!;
        int descriptor = Libc.Open(folder, Libc.O_RDONLY | Libc.O_CLOEXECLinux);
        int errno = descriptor < 0 ? Marshal.GetLastPInvokeError() : 0;
        if (descriptor >= 0)
        {
            // File systems that cannot sync a folder say EINVAL, and need none.
            errno = Libc.FSync(descriptor) == 0 || Marshal.GetLastPInvokeError() == Libc.EINVAL ? 0 : Marshal.GetLastPInvokeError();
            _ = Libc.Close(descriptor);
        }

        if (errno != 0)
        {
            throw new IOException(string.Create(CultureInfo.InvariantCulture, $"The folder could not be synced: {Marshal.GetPInvokeErrorMessage(errno)} : '{folder}'"));
        }
    }
}
