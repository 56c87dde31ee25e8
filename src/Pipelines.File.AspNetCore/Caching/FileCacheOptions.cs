namespace Pipelines.File.AspNetCore;

/// <summary>Where a cache on disk keeps its entries, and how many bytes it may take.</summary>
public sealed class FileCacheOptions
{
    /// <summary>The name of the options of <c>AddFileOutputCache</c>, to bind them to configuration.</summary>
    public const string OutputCache = "Pipelines.File.OutputCache";

    /// <summary>The name of the options of <c>AddFileDistributedCache</c>.</summary>
    public const string DistributedCache = "Pipelines.File.DistributedCache";

    /// <summary>The least <see cref="MaxSize"/>, bytes: 1 MiB.</summary>
    internal const long LeastMaxSize = 1024 * 1024;

    /// <summary>
    /// The folder of the entries; it is made if it does not exist, readable only by the user that makes it. Required. The folder must hold
    /// nothing else. Several processes may share it, also with different <see cref="MaxSize"/>: the least one is then kept.
    /// </summary>
    public string Folder { get; set; } = string.Empty;

    /// <summary>
    /// The number of bytes that all entries may occupy, in whole blocks of 4,096 bytes; 1 GiB by default, at least 1 MiB. When it is
    /// reached, the entries that were not read for the longest time are removed, roughly in that order, until a tenth is free. A process
    /// checks after every twentieth that it has stored itself, so the folder may be larger by a twentieth for each process, and for as long
    /// as it takes to sweep all files (some seconds for a million).
    /// </summary>
    public long MaxSize { get; set; } = 1L << 30;

    /// <summary>
    /// Whether a folder is taken that others may write to; <see langword="false"/> by default, because who may could plant entries, which
    /// are then given out as yours: their checksum is no signature. Not checked on Windows; on macOS the owner is not.
    /// </summary>
    public bool AllowSharedFolder { get; set; }

    /// <exception cref="ArgumentException"><see cref="Folder"/> is empty.</exception>
    /// <exception cref="ArgumentOutOfRangeException"><see cref="MaxSize"/> is out of its range.</exception>
    internal void Validate()
    {
        ArgumentException.ThrowIfNullOrEmpty(Folder);
        ArgumentOutOfRangeException.ThrowIfLessThan(MaxSize, LeastMaxSize);
    }
}
