namespace Pipelines.File.IO;

/// <summary>The calls that concern a file's name.</summary>
internal unsafe partial class WindowsCalls
{
    /// <summary>SetFileInformationByHandle with FileRenameInfoEx and FILE_RENAME_FLAG_POSIX_SEMANTICS: also where others have the file open that is replaced.</summary>
    internal virtual int Rename(SafeFileHandle file, string to, bool replaces)
    {
        // The name begins behind its length, before the end that the structure is padded to.
        int nameOffset = (int)Marshal.OffsetOf<Kernel32.FileRenameInformation>(nameof(Kernel32.FileRenameInformation.NameBytes)) + sizeof(uint);
        int size = Math.Max(sizeof(Kernel32.FileRenameInformation), nameOffset + ((to.Length + 1) * sizeof(char)));
        byte[] bytes = new byte[size];
        fixed (byte* start = bytes)
        {
            Kernel32.FileRenameInformation* information = (Kernel32.FileRenameInformation*)start;
            information->Flags = Kernel32.FILE_RENAME_FLAG_POSIX_SEMANTICS | (replaces ? Kernel32.FILE_RENAME_FLAG_REPLACE_IF_EXISTS : 0);
            information->NameBytes = (uint)(to.Length * sizeof(char));
            to.CopyTo(new Span<char>(start + nameOffset, to.Length));
            return Answer(Kernel32.SetFileInformationByHandle(file, Kernel32.FileRenameInfoEx, start, (uint)size));
        }
    }

    /// <summary>MoveFileExW with MOVEFILE_WRITE_THROUGH, never to another volume.</summary>
    internal virtual int Move(string from, string to, bool replaces)
        => Answer(Kernel32.MoveFileEx(from, to, Kernel32.MOVEFILE_WRITE_THROUGH | (replaces ? Kernel32.MOVEFILE_REPLACE_EXISTING : 0)));

    /// <summary>FlushFileBuffers of a folder, where that is allowed.</summary>
    internal virtual int SyncFolder(string path)
    {
        using SafeFileHandle folder = Kernel32.CreateFile(
            path, Kernel32.GENERIC_WRITE, (uint)(FileShare.ReadWrite | FileShare.Delete), null, (uint)FileMode.Open, Kernel32.FILE_FLAG_BACKUP_SEMANTICS, 0);
        return folder.IsInvalid ? Marshal.GetLastPInvokeError() : Answer(Kernel32.FlushFileBuffers(folder));
    }
}
