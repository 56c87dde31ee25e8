using System.Buffers;
using Microsoft.AspNetCore.StaticFiles;

namespace FileServerSample;

/// <summary>
/// The folder that is served: the one place where a name that came from outside becomes a path. What begins with a dot is neither served nor written, which takes in
/// "..", and uploads on the way; symbolic links are neither followed nor shown.
/// </summary>
internal sealed class ServedFolder
{
    private static readonly SearchValues<char> s_refused = SearchValues.Create(['\\', '/', '\0', .. Path.GetInvalidFileNameChars()]);
    private static readonly FileExtensionContentTypeProvider s_contentTypes = new();

    private readonly string _root;

    internal ServedFolder(string root) => _root = root;

    /// <summary>The path of what <paramref name="names"/> names below the root, whether it is there or not; <see langword="null"/> if that is not served.</summary>
    internal string? PathOf(IReadOnlyList<string> names)
    {
        string path = _root;
        foreach (string name in names)
        {
            // The server decodes a path once and leaves encoded slashes as they are: whoever sends one does not mean a name.
            if (name.Length == 0 || name[0] == '.' || name.AsSpan().ContainsAny(s_refused) || name.Contains("%2f", StringComparison.OrdinalIgnoreCase))
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

    /// <summary>What is shown of a folder, folders first.</summary>
    internal static IEnumerable<FileSystemInfo> List(string folder)
        => new DirectoryInfo(folder).EnumerateFileSystemInfos()
            .Where(entry => entry.Name[0] != '.' && entry.LinkTarget is null && !entry.Name.AsSpan().ContainsAny(s_refused))
            .OrderBy(entry => entry is FileInfo)
            .ThenBy(entry => entry.Name, StringComparer.OrdinalIgnoreCase);

    internal static string ContentTypeOf(string path)
        => s_contentTypes.TryGetContentType(path, out string? contentType) ? contentType : "application/octet-stream";

    /// <summary>Whether a browser shows it in a page of its own, which runs no script: sound, films, pictures but SVG.</summary>
    internal static bool IsPlayed(string contentType)
        => contentType.StartsWith("audio/", StringComparison.Ordinal)
            || contentType.StartsWith("video/", StringComparison.Ordinal)
            || (contentType.StartsWith("image/", StringComparison.Ordinal) && contentType != "image/svg+xml");
}
