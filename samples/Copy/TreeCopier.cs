using System.Collections.Concurrent;

namespace CopySample;

/// <summary>
/// Copies a folder: folders first, then the files, several at once, then the folders' modes and times, which copying files into them has
/// changed.
/// </summary>
internal sealed class TreeCopier(Settings settings, Totals totals)
{
    private static readonly EnumerationOptions s_everything =
        new() { AttributesToSkip = FileAttributes.None, IgnoreInaccessible = false };

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
        root = root.ResolveLinkTarget(returnFinalTarget: true) as DirectoryInfo ?? root;
        List<(DirectoryInfo Source, string Destination)> folders = [(root, settings.Destination)];
        List<(FileSystemInfo Source, string Destination)> files = [];
        for (int i = 0; i < folders.Count; i++)
        {
            (DirectoryInfo source, string destination) = folders[i];
            Try(() =>
            {
                MakeFolder(source, destination);
                foreach (FileSystemInfo entry in source.EnumerateFileSystemInfos("*", s_everything))
                {
                    if (entry is DirectoryInfo { LinkTarget: null } folder)
                    {
                        folders.Add((folder, Path.Join(destination, entry.Name)));
                    }
                    else
                    {
                        files.Add((entry, Path.Join(destination, entry.Name)));
                    }
                }
            });
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
                Fail(e);
            }
        });

        // The inner ones first: what is made in a folder changes its time.
        foreach ((DirectoryInfo source, string destination) in Enumerable.Reverse(folders))
        {
            Try(() =>
            {
                if (!OperatingSystem.IsWindows())
                {
                    File.SetUnixFileMode(destination, source.UnixFileMode);
                }

                Directory.SetLastWriteTimeUtc(destination, source.LastWriteTimeUtc);
            });
        }

        void Try(Action step)
        {
            try
            {
                step();
            }
            catch (Exception e) when (e is IOException or UnauthorizedAccessException)
            {
                Fail(e);
            }
        }

        void Fail(Exception e)
        {
            totals.AddFailed();
            tell(e.Message);
        }
    }

    /// <summary>Makes a folder that nobody may enter who may not enter the source; files can be made in it.</summary>
    private static void MakeFolder(DirectoryInfo source, string destination)
    {
        if (OperatingSystem.IsWindows())
        {
            Directory.CreateDirectory(destination);
        }
        else
        {
            Directory.CreateDirectory(destination, source.UnixFileMode | UnixFileMode.UserWrite | UnixFileMode.UserExecute);
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
