using System.Runtime.InteropServices;
using System.Runtime.Versioning;

namespace Pipelines.File.AspNetCore;

/// <summary>A folder that the user of this process alone may write to: whoever else could, would plant uploads and cache entries.</summary>
internal static partial class PrivateFolder
{
    private const UnixFileMode Own = UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute;
    private const uint Root = 0;
    private const UnixFileMode Readable = Own | UnixFileMode.GroupRead | UnixFileMode.GroupExecute | UnixFileMode.OtherRead
        | UnixFileMode.OtherExecute;

    /// <summary>
    /// Makes the folder if it does not exist, readable only by the user that makes it, and those above it, which others may read.
    /// </summary>
    internal static void Make(string path)
    {
        if (OperatingSystem.IsWindows())
        {
            Directory.CreateDirectory(path);
        }
        else
        {
            path = Path.TrimEndingDirectorySeparator(path);
            MakeAbove(path);
            Directory.CreateDirectory(path, Own);
        }
    }

    // .NET makes the folders above with all rights that the umask leaves: who may write there puts another folder in the place of this one.
    [UnsupportedOSPlatform("windows")]
    private static void MakeAbove(string path)
    {
        if (Path.GetDirectoryName(path) is { Length: > 0 } above && !Directory.Exists(above))
        {
            MakeAbove(above);
            Directory.CreateDirectory(above, Readable);
        }
    }

    /// <summary>Makes the folder, and refuses one that others may write to.</summary>
    /// <exception cref="UnauthorizedAccessException">Others may write to it, or it is another user's.</exception>
    internal static void MakeAndCheck(string path, bool allowShared)
    {
        Make(path);
        if (!allowShared && !OperatingSystem.IsWindows() && Stranger(path) is { } stranger)
        {
            throw new UnauthorizedAccessException($"{stranger} may write to the folder '{path}', and so could plant files that this "
                + "application takes for its own. Take its rights away (chmod 700, chown), name a folder that does not exist, or set "
                + "AllowSharedFolder if everybody who may write there is trusted.");
        }
    }

    // The group bits of a file with an access list are its mask: somebody in the list, or the group.
    private static string? Stranger(string path)
    {
        if (OperatingSystem.IsWindows())
        {
            return null;
        }

        UnixFileMode mode = System.IO.File.GetUnixFileMode(path);
        if ((mode & UnixFileMode.OtherWrite) != 0)
        {
            return "Every user";
        }

        if ((mode & UnixFileMode.GroupWrite) != 0)
        {
            return "The folder's group, or who is in its access list,";
        }

        // A link in /tmp is that of who made it, and may lead elsewhere tomorrow.
        return OwnerOf(path, ofLink: false) is { } owner && owner != EffectiveUser() ? $"Its owner, the user with the number {owner},"
            : OwnerOf(Path.TrimEndingDirectorySeparator(path), ofLink: true) is { } linker && linker != Root && linker != EffectiveUser()
                ? $"The user with the number {linker}, whose link it is," : null;
    }

    // statx(2), whose structure is the same everywhere.
    private static unsafe uint? OwnerOf(string path, bool ofLink)
    {
        if (!OperatingSystem.IsLinux())
        {
            return null;
        }

        const int CurrentFolder = -100;
        const int NotFollowed = 0x100;
        const uint AskOwner = 8;
        const int OwnerOffset = 20;
        byte* status = stackalloc byte[256];
        try
        {
            return StatusOf(CurrentFolder, path, ofLink ? NotFollowed : 0, AskOwner, status) == 0
                && (*(uint*)status & AskOwner) != 0 ? *(uint*)(status + OwnerOffset) : null;
        }
        catch (EntryPointNotFoundException)
        {
            return null;
        }
    }

    [LibraryImport("libc", EntryPoint = "statx", StringMarshalling = StringMarshalling.Utf8)]
    private static unsafe partial int StatusOf(int folder, string path, int flags, uint mask, byte* status);

    [LibraryImport("libc", EntryPoint = "geteuid")]
    private static partial uint EffectiveUser();
}
