using System.Collections.Concurrent;

namespace CopySample;

/// <summary>
/// Copies a folder: folders first, then the files, several at once, then the folders' modes and times, which copying files into them has
/// changed.
/// </summary>
internal sealed class TreeCopier(Settings settings, Totals totals)
{
    private static readonly EnumerationOptions s_everything =
        new() { RecurseSubdirectories = true, AttributesToSkip = FileAttributes.None, IgnoreInaccessible = false };

    private readonly FileCopier _copier = new(settings, totals);
    private readonly ConcurrentBag<(string Name, string Hash)> _hashes = [];

    /// <summary>The files that were copied and their SHA-256, by name, where that was asked for.</summary>
    internal IEnumerable<(string Name, string Hash)> Hashes => _hashes.OrderBy(file => file.Name, StringComparer.Ordinal);

    /// <summary>Copies everything that can be copied; what cannot is told, and the others go on.</summary>
    /// <param name="tell">Told of each file that is not copied, and why; by several threads.</param>
    /// <param name="cancellationToken">Ends it between two reads of each file under way: none of them appears.</param>
    internal async Task CopyAsync(Action<string> tell, CancellationToken cancellationToken)
    {
        DirectoryInfo root = new(settings.Source);
        List<(DirectoryInfo Source, string Destination)> folders = [(root, settings.Destination)];
        List<(FileSystemInfo Source, string Destination)> files = [];
        foreach (FileSystemInfo entry in root.EnumerateFileSystemInfos("*", s_everything))
        {
            string destination = Path.Join(settings.Destination, Path.GetRelativePath(settings.Source, entry.FullName));
            if (entry is DirectoryInfo folder && folder.LinkTarget is null)
            {
                folders.Add((folder, destination));
            }
            else
            {
                files.Add((entry, destination));
            }
        }

        foreach ((_, string destination) in folders)
        {
            Directory.CreateDirectory(destination);
        }

        ParallelOptions options = new() { MaxDegreeOfParallelism = settings.Jobs, CancellationToken = cancellationToken };
        await Parallel.ForEachAsync(files, options, async (file, token) =>
        {
            try
            {
                await CopyAsync(file.Source, file.Destination, token);
            }
            catch (Exception e) when (e is IOException or UnauthorizedAccessException)
            {
                totals.AddFailed();
                tell(e.Message);
            }
        });

        // The inner ones first: what is made in a folder changes its time.
        foreach ((DirectoryInfo source, string destination) in Enumerable.Reverse(folders))
        {
            if (!OperatingSystem.IsWindows())
            {
                File.SetUnixFileMode(destination, source.UnixFileMode);
            }

            Directory.SetLastWriteTimeUtc(destination, source.LastWriteTimeUtc);
        }
    }

    private async Task CopyAsync(FileSystemInfo source, string destination, CancellationToken cancellationToken)
    {
        FileInfo there = new(destination);
        if (source.LinkTarget is { } target)
        {
            if (there.LinkTarget != target)
            {
                there.Delete();
                File.CreateSymbolicLink(destination, target);
            }

            return;
        }

        FileInfo file = (FileInfo)source;
        if (there.Exists && there.LinkTarget is null && there.Length == file.Length && there.LastWriteTimeUtc == file.LastWriteTimeUtc)
        {
            totals.AddUnchanged();
            return;
        }

        if (await _copier.CopyAsync(file, destination, cancellationToken) is { } hash)
        {
            _hashes.Add((Path.GetRelativePath(settings.Destination, destination), hash));
        }
    }
}
