using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>The file that becomes the next segment: it is filled with zeros while the current one is written.</summary>
internal sealed class PreparedSegment
{
    private const int Step = 1024 * 1024;

    private readonly string _folder;
    private readonly FileLock _fileLock;
    private readonly Task<(SafeFileHandle? Handle, long Zeroed)> _making;
    private volatile bool _isWanted;

    internal PreparedSegment(string folder, FileLock fileLock, long size)
    {
        _folder = folder;
        _fileLock = fileLock;
        _making = Task.Run(() => MakeAsync(size));
    }

    /// <summary>The file as far as it has come: its handle, and how many bytes of zeros are on the device. Called once.</summary>
    internal Task<(SafeFileHandle? Handle, long Zeroed)> TakeAsync()
    {
        _isWanted = true;
        return _making;
    }

    internal async ValueTask DeleteAsync()
    {
        if ((await TakeAsync().ConfigureAwait(false)).Handle is { } handle)
        {
            handle.Dispose();
            JournalFolder.DeleteNext(_folder, _fileLock);
        }
    }

    private async Task<(SafeFileHandle? Handle, long Zeroed)> MakeAsync(long size)
    {
        SafeFileHandle? handle = null;
        long zeroed = 0;
        try
        {
            JournalFolder.ThrowIfNotInPlace(_fileLock);
            handle = System.IO.File.OpenHandle(
                Path.Combine(_folder, JournalFormat.NextName), FileMode.CreateNew, FileAccess.ReadWrite, SegmentFile.Share);
            FilePipeWriter writer = FilePipeWriter.Create(handle, new FilePipeWriterOptions { LeaveOpen = true });
            await using (writer.ConfigureAwait(false))
            {
                // Each step is synced by itself, so that no commit waits for much more than its own bytes.
                byte[] zeros = new byte[Step];
                while (!_isWanted && zeroed < size)
                {
                    int length = (int)Math.Min(Step, size - zeroed);
                    await writer.WriteAsync(zeros.AsMemory(0, length)).ConfigureAwait(false);
                    await writer.FlushAsync(FlushGuarantee.Durable).ConfigureAwait(false);
                    zeroed += length;
                }
            }

            return (handle, zeroed);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // The device is full, perhaps. The next segment then grows as it is written, and whoever appends meets the error.
            handle?.Dispose();
            JournalFolder.DeleteNext(_folder, _fileLock);
            return default;
        }
    }
}
