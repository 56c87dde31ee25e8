namespace Pipelines.File.Growing;

/// <summary>The watch of one followed file. Its reference is weak, so that a reader that was forgotten can be collected.</summary>
internal sealed class FileWatch(FollowedFile file)
{
    private readonly WeakReference<FollowedFile> _file = new(file);
    private FileWatch? _next;

    /// <summary>The file; <see langword="null"/> if it was collected.</summary>
    internal FollowedFile? File => _file.TryGetTarget(out FollowedFile? file) ? file : null;

    /// <summary>
    /// The path for inotify_add_watch(2), which leads to the open file whatever its name is. If the owner has closed the handle, the path
    /// leads nowhere or to another file. An event of that file costs one read, which reports the closed handle.
    /// </summary>
    internal string DescriptorPath { get; } = $"/proc/self/fd/{file.Handle.DangerousGetHandle()}";

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
