namespace Pipelines.File.Growing;

/// <summary>One watch. Its reference is weak, so that a reader that was forgotten can be collected.</summary>
/// <param name="file">What is watched.</param>
internal sealed class FileWatch(FollowedFile file)
{
    private readonly WeakReference<FollowedFile> _owner = new(file);
    private FileWatch? _next;

    /// <summary>What is watched; <see langword="null"/> if it was collected.</summary>
    internal FollowedFile? Owner => _owner.TryGetTarget(out FollowedFile? owner) ? owner : null;

    /// <summary>
    /// Leads to the open file whatever its name is. If the owner has closed the handle, it leads nowhere or to another file. An event of
    /// that file costs one read, which reports the closed handle.
    /// </summary>
    internal string Path { get; } = $"/proc/self/fd/{file.Handle.DangerousGetHandle()}";

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
