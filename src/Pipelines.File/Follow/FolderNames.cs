using System.IO.Enumeration;
using Pipelines.File.IO;

namespace Pipelines.File.Follow;

/// <summary>
/// The names of the files in a folder, listed again only when the folder has changed. Used by one caller at a time. Its methods wait for
/// the device.
/// </summary>
/// <remarks>
/// A change that came within the same tick of the file system's clock as the listing leaves no trace. So after a change the folder is
/// listed at doubling distances, until the change is older than any such tick.
/// </remarks>
internal sealed class FolderNames(string path, TimeProvider time)
{
    /// <summary>The longest tick that a file system has for the time of a folder: 2 s of FAT.</summary>
    private static readonly TimeSpan s_longestTick = TimeSpan.FromSeconds(2.5);

    private static readonly EnumerationOptions s_everything = new() { AttributesToSkip = 0, IgnoreInaccessible = false };

    private (FileIdentity Identity, DateTime Changed) _version;
    private long _changedAt;
    private TimeSpan _nextLook;
    private string[] _names = [];

    /// <summary>How often the folder was listed.</summary>
    internal int Listings { get; private set; }

    /// <summary>The names, in ordinal order.</summary>
    internal ReadOnlySpan<string> Names => _names;

    /// <summary>Lists the folder if it has changed. Returns whether it was listed.</summary>
    /// <param name="isSure">Whether to list it also if a change may have left no trace.</param>
    internal bool Look(bool isSure)
    {
        // The version before the names: a change in between is seen by the next look.
        _ = FileStatus.OfName(path, out FileStatus status);
        (FileIdentity, DateTime) version = (status.Identity, status.LastWritten);
        if (version != _version || Listings == 0)
        {
            (_version, _changedAt, _nextLook) = (version, time.GetTimestamp(), TimeSpan.Zero);
        }

        TimeSpan age = time.GetElapsedTime(_changedAt);
        if ((age < _nextLook && !isSure) || _nextLook > s_longestTick)
        {
            return false;
        }

        try
        {
            _names = [.. new FileSystemEnumerable<string>(path, static (ref entry) => entry.FileName.ToString(), s_everything)
            {
                ShouldIncludePredicate = static (ref entry) => !entry.IsDirectory,
            }];
        }
        catch (Exception e) when (e is DirectoryNotFoundException or UnauthorizedAccessException)
        {
            // It holds nothing that could be found.
            _names = [];
        }
        catch (IOException)
        {
            // No descriptor is free, for example. The names stay as they were, and the next look lists the folder.
            _nextLook = TimeSpan.Zero;
            return false;
        }

        _names.AsSpan().Sort(StringComparer.Ordinal.Compare);
        _nextLook = TimeSpan.FromMilliseconds(Math.Max(50, age.TotalMilliseconds * 2));
        Listings++;
        return true;
    }

    internal bool Contains(string name) => Array.BinarySearch(_names, name, StringComparer.Ordinal) >= 0;

    /// <summary>The names that begin with this.</summary>
    internal ReadOnlySpan<string> StartingWith(string prefix)
    {
        int first = Array.BinarySearch(_names, prefix, StringComparer.Ordinal);
        first = first < 0 ? ~first : first;
        int end = first;
        while (end < _names.Length && _names[end].StartsWith(prefix, StringComparison.Ordinal))
        {
            end++;
        }

        return _names.AsSpan(first, end - first);
    }
}
