namespace Pipelines.File.IO;

/// <summary>The calls that tell what a file is, and reserve its room.</summary>
internal unsafe partial class WindowsCalls
{
    /// <summary>GetFileInformationByHandleEx with FileBasicInfo; 0 for what has no attributes.</summary>
    internal virtual FileAttributes AttributesOf(SafeFileHandle file)
    {
        Kernel32.FileBasicInformation information;
        return Kernel32.GetFileInformationByHandleEx(file, Kernel32.FileBasicInfo, &information, (uint)sizeof(Kernel32.FileBasicInformation)) != 0
            ? (FileAttributes)information.FileAttributes
            : 0;
    }

    /// <summary>NtQueryInformationFile with FileModeInformation: whether it was opened with FILE_FLAG_NO_BUFFERING.</summary>
    internal virtual bool IsUnbuffered(SafeFileHandle file) => (ModeOf(file) & NtDll.FILE_NO_INTERMEDIATE_BUFFERING) != 0;

    /// <summary>ReOpenFile with FILE_FLAG_NO_BUFFERING: the same file once more, past the system's cache.</summary>
    internal virtual int OpenUnbuffered(SafeFileHandle file, bool isWriter, out SafeFileHandle unbuffered)
    {
        uint flags = Kernel32.FILE_FLAG_NO_BUFFERING | Kernel32.FILE_FLAG_OVERLAPPED | ((ModeOf(file) & NtDll.FILE_WRITE_THROUGH) != 0 ? Kernel32.FILE_FLAG_WRITE_THROUGH : 0);
        unbuffered = Kernel32.ReOpenFile(
            file, isWriter ? Kernel32.GENERIC_WRITE : Kernel32.GENERIC_READ, (uint)(FileShare.ReadWrite | FileShare.Delete), flags);
        return Answer(unbuffered.IsInvalid ? 0 : 1);
    }

    /// <summary>GetFileType: a pipe, named or not, or a socket.</summary>
    internal virtual bool IsPipe(SafeFileHandle file) => Kernel32.GetFileType(file) == Kernel32.FILE_TYPE_PIPE;

    /// <summary>PeekNamedPipe: a pipe that has not come to its end. A socket is none.</summary>
    internal virtual bool IsPipeThatGoesOn(SafeFileHandle file) => Kernel32.PeekNamedPipe(file, null, 0, null, null, null) != 0;

    /// <summary>SetFileInformationByHandle with FileAllocationInfo: reserves room, which the file gives back by itself when it is closed.</summary>
    internal virtual int Preallocate(SafeFileHandle file, long size)
        => Answer(Kernel32.SetFileInformationByHandle(file, Kernel32.FileAllocationInfo, &size, sizeof(long)));

    /// <summary>How it was opened; 0 where the system does not tell.</summary>
    private static uint ModeOf(SafeFileHandle file)
    {
        NtDll.IoStatusBlock status;
        uint mode;
        return NtDll.QueryInformationFile(file, &status, &mode, sizeof(uint), NtDll.FileModeInformation) == 0 ? mode : 0;
    }
}
