namespace Pipelines.File.IO;

/// <summary>
/// A name as the system calls take it: one in an open folder, or a path. In bytes, because not every name is UTF-8, and none of these is a
/// string of .NET's then.
/// </summary>
/// <param name="Folder">The open folder, which its owner keeps open; <see langword="null"/> if the bytes are a path.</param>
/// <param name="Bytes">The name or path, and a zero behind it.</param>
/// <param name="Path">The path, for messages.</param>
internal readonly record struct UnixName(SafeFileHandle? Folder, byte[] Bytes, string Path)
{
    /// <summary>The descriptor that the calls take with the bytes.</summary>
    internal int Descriptor => Folder is null ? Libc.AT_FDCWD : (int)Folder.DangerousGetHandle();

    internal static UnixName Of(string path) => new(null, Encode(path), path);

    /// <summary>Another name in the same folder.</summary>
    internal UnixName Beside(string name)
    {
        string path = System.IO.Path.Combine(System.IO.Path.GetDirectoryName(Path)!, name);
        return Folder is null ? Of(path) : new UnixName(Folder, Encode(name), path);
    }

    /// <summary>The same file as a name in this open folder.</summary>
    internal UnixName In(SafeFileHandle folder) => new(folder, Encode(System.IO.Path.GetFileName(Path)), Path);

    /// <summary>The folder of the name, for openat(2).</summary>
    internal byte[] FolderBytes => Folder is null ? Encode(System.IO.Path.GetDirectoryName(Path)!) : [(byte)'.', 0];

    /// <summary>A path of the file, for calls that take nothing else.</summary>
    internal byte[] PathBytes => Folder is null ? Bytes : [.. Encoding.UTF8.GetBytes($"/proc/self/fd/{Descriptor}/"), .. Bytes];

    public override string ToString() => Path;

    private static byte[] Encode(string name)
    {
        byte[] bytes = new byte[Encoding.UTF8.GetByteCount(name) + 1];
        Encoding.UTF8.GetBytes(name, bytes);
        return bytes;
    }
}
