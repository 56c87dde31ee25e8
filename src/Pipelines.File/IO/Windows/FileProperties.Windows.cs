namespace Pipelines.File.IO;

// What Windows tells of an open file.
internal readonly partial struct FileProperties
{
    // The two numbers are FILE_ATTRIBUTE_RECALL_ON_OPEN and FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS (File Attribute Constants), which the enum
    // does not name: the bytes are stored elsewhere.
    private const FileAttributes WithinTheCall
        = FileAttributes.Compressed | FileAttributes.Encrypted | FileAttributes.Offline | (FileAttributes)0x40000
            | (FileAttributes)0x400000;

    /// <inheritdoc cref="Of(SafeFileHandle, string?)"/>
    internal static FileProperties OfWindows(SafeFileHandle handle, string? path, WindowsCalls calls)
    {
        FileAttributes attributes = calls.AttributesOf(handle);
        if ((attributes & FileAttributes.Directory) != 0)
        {
            throw FileErrors.FromWin32(Kernel32.ERROR_ACCESS_DENIED, path);
        }

        bool isDevice = path is not null && OverlappedOpening.IsDevice(path);
        try
        {
            FileProperties properties = OfAny(handle, path);
            return properties with
            {
                IsRegular = properties.IsRegular && !isDevice,
                IsReadWithinTheCall = (attributes & WithinTheCall) != 0,
            };
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException && isDevice)
        {
            // A disk or volume whose length the system does not report.
            return new FileProperties { CanSeek = true };
        }
    }
}
