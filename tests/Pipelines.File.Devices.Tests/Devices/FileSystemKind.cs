namespace FilePipelines.Devices.Tests;

/// <summary>A file system that the laboratory makes: as small as it goes, for it is mounted thousands of times.</summary>
internal sealed record FileSystemKind(string Name, long Length, string MountOptions, string[] Arguments)
{
    internal static FileSystemKind Ext4 { get; }
        = new("ext4", 64 << 20, "", ["-q", "-F", "-b", "4096", "-J", "size=4", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"]);

    internal static FileSystemKind Xfs { get; } = new("xfs", 96 << 20, "nouuid", ["-q", "-f", "-K", "-l", "size=8m"]);

    internal static FileSystemKind Btrfs { get; } = new("btrfs", 128 << 20, "", ["-q", "-f", "-K", "-m", "single", "-d", "single"]);

    internal static FileSystemKind Of(string name) => name switch { "ext4" => Ext4, "xfs" => Xfs, _ => Btrfs };

    /// <summary>
    /// How many copies of one disk are mounted at once, as a mount takes longer than it keeps a processor busy. Btrfs refuses a second one.
    /// </summary>
    internal int Copies => this == Btrfs ? 1 : this == Xfs ? 3 : 2;

    /// <summary>Makes an empty one.</summary>
    internal void Make(DiskImage image) => FileSystemMaker.Make(Name, image.Path, Arguments);

    public override string ToString() => Name;
}
