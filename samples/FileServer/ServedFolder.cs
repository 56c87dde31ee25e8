using System.Buffers;
using System.IO.Enumeration;
using Microsoft.AspNetCore.StaticFiles;

namespace FileServerSample;

/// <summary>
/// The folder that is served: the one place where a name that came from outside becomes a path. What begins with a dot is neither served
/// nor written, which takes in "..", and uploads on the way; symbolic links are neither followed nor shown.
/// </summary>
internal sealed class ServedFolder
{
    private static readonly SearchValues<char> s_refused = SearchValues.Create(
        ['\\', '/', '\0', '\uFFFD', .. Path.GetInvalidFileNameChars()]);
    private static readonly FileExtensionContentTypeProvider s_contentTypes = new();

    private readonly string _root;

    internal ServedFolder(string root) => _root = root;

    /// <summary>
    /// The path of what <paramref name="names"/> names below the root, whether it is there or not; <see langword="null"/> if that is not
    /// served.
    /// </summary>
    internal string? PathOf(IReadOnlyList<string> names)
    {
        string path = _root;
        foreach (string name in names)
        {
            if (name.Length == 0 || !IsServed(name))
            {
                return null;
            }

            path = Path.Join(path, name);
            if (new FileInfo(path).LinkTarget is not null)
            {
                return null;
            }
        }

        // Windows takes some names for devices, and cuts others short.
        return Path.GetFullPath(path) == path ? path : null;
    }

    /// <summary>
    /// The names below /files/ of a request target, each decoded once; <see langword="null"/>: no name is encoded so. The last one is empty
    /// where the target is that of a folder.
    /// </summary>
    internal static string[]? NamesOf(string target)
    {
        // Not the path, which the server has decoded but for slashes: a%2fb is two names there, or one that has a percent sign.
        string path = target.Split('?')[0];
        if (path.StartsWith("http://", StringComparison.OrdinalIgnoreCase))
        {
            // As to a proxy.
            path = path[Math.Max(0, path.IndexOf('/', "http://".Length))..];
        }

        if (!path.StartsWith("/files/", StringComparison.Ordinal))
        {
            return null;
        }

        string[] names = path["/files/".Length..].Split('/');
        for (int i = 0; i < names.Length; i++)
        {
            string[] parts = [.. names[i].Split("%25").Select(Uri.UnescapeDataString)];
            if (parts.Any(part => part.Contains('%', StringComparison.Ordinal)))
            {
                return null;
            }

            names[i] = string.Join('%', parts);
        }

        return names;
    }

    /// <summary>
    /// A part of what is shown of a folder, folders first, and how many names there are. Only the names up to that part are held.
    /// </summary>
    internal static List<FolderEntry> List(string folder, int skip, int take, out int count)
    {
        int most = (int)Math.Min(int.MaxValue, (long)skip + take);
        int all = 0;

        // The one that is shown last is on top, and makes room for an earlier one.
        PriorityQueue<FolderName, FolderName> first = new(Comparer<FolderName>.Create(static (a, b) => b.CompareTo(a)));
        FileSystemEnumerable<bool> names = new(folder, (ref FileSystemEntry entry) =>
        {
            if (entry.FileName[0] == '.' || entry.FileName.ContainsAny(s_refused))
            {
                return false;
            }

            all++;
            if (first.Count < most)
            {
                FolderName name = new(!entry.IsDirectory, entry.FileName.ToString());
                first.Enqueue(name, name);
            }
            else if (first.Count > 0 && first.Peek().CompareTo(!entry.IsDirectory, entry.FileName) > 0)
            {
                FolderName name = new(!entry.IsDirectory, entry.FileName.ToString());
                first.EnqueueDequeue(name, name);
            }

            return true;
        });
        foreach (bool _ in names)
        {
        }

        count = all;
        Stack<FolderName> shown = [];
        while (first.Count > skip)
        {
            shown.Push(first.Dequeue());
        }

        List<FolderEntry> entries = [];
        foreach (FolderName name in shown)
        {
            FileSystemInfo entry = name.IsFile ? new FileInfo(Path.Join(folder, name.Name))
                : new DirectoryInfo(Path.Join(folder, name.Name));
            try
            {
                if (entry.LinkTarget is null && entry.Exists)
                {
                    entries.Add(new FolderEntry(entry.Name, (entry as FileInfo)?.Length, TimeOf(entry)));
                }
            }
            catch (Exception e) when (e is IOException or UnauthorizedAccessException)
            {
                // It is gone by now, or its name is no UTF-8, and nothing means it.
            }
        }

        return entries;
    }

    internal static string ContentTypeOf(string path)
        => s_contentTypes.TryGetContentType(path, out string? contentType) ? contentType : "application/octet-stream";

    /// <summary>When it was written; the epoch, if a file system holds a time that .NET does not.</summary>
    internal static DateTime TimeOf(FileSystemInfo entry)
    {
        try
        {
            return entry.LastWriteTimeUtc >= DateTime.UnixEpoch ? entry.LastWriteTimeUtc : DateTime.UnixEpoch;
        }
        catch (ArgumentOutOfRangeException)
        {
            return DateTime.UnixEpoch;
        }
    }

    private static bool IsServed(string name) => name[0] != '.' && !name.AsSpan().ContainsAny(s_refused);
}
