using Pipelines.File.IO;

namespace Pipelines.File.Growing;

/// <summary>One watch. Its reference is weak, so that a reader that was forgotten can be collected.</summary>
/// <param name="owner">What is watched.</param>
/// <param name="path">Leads to it.</param>
/// <param name="events">What it wants to be told, as inotify_add_watch(2) takes it.</param>
internal sealed class FileWatch(IWatched owner, string path, uint events)
{
    private const uint FileChanges = Libc.IN_MODIFY | Libc.IN_ATTRIB | Libc.IN_MOVE_SELF | Libc.IN_DELETE_SELF;

    private readonly WeakReference<IWatched> _owner = new(owner);
    private FileWatch? _next;

    /// <summary>
    /// The watch of a file. Its path leads to the open file whatever its name is. If the owner has closed the handle, the path leads
    /// nowhere or to another file. An event of that file costs one read, which reports the closed handle.
    /// </summary>
    internal FileWatch(FollowedFile file)
        : this(file, $"/proc/self/fd/{file.Handle.DangerousGetHandle()}", FileChanges)
    {
    }

    /// <summary>What is watched; <see langword="null"/> if it was collected.</summary>
    internal IWatched? Owner => _owner.TryGetTarget(out IWatched? owner) ? owner : null;

    internal string Path => path;

    internal uint Events => events;

    /// <summary>
    /// The kernel's number of the watch (its watch descriptor); 0 if there is none. The lock of <see cref="FileWatches"/> guards this and
    /// the two members below.
    /// </summary>
    internal int Number { get; set; }

    /// <summary>The next watch with the same number: readers of one file share it.</summary>
    internal ref FileWatch? Next => ref _next;

    /// <summary>Whether the file was released: it is not watched again.</summary>
    internal bool IsReleased { get; set; }
}
