namespace Pipelines.File.AspNetCore;

/// <summary>How files are sent through file pipelines. It is read once, when the middleware is added.</summary>
/// <example>
/// <code>
/// using Pipelines.File.AspNetCore;
///
/// WebApplication app = WebApplication.Create(args);
/// app.UseFilePipelines(new FilePipelinesOptions { MaxOpenFiles = 0 });
/// app.UseStaticFiles();
/// app.Run();
/// </code>
/// </example>
public sealed class FilePipelinesOptions
{
    /// <summary>The default of <see cref="SegmentSize"/>, bytes.</summary>
    internal const int DefaultSegmentSize = 64 * 1024;

    /// <summary>The largest <see cref="SegmentSize"/>, bytes.</summary>
    internal const int MaxSegmentSize = 1024 * 1024;

    // What a timer takes, and more than anybody needs.
    private static readonly TimeSpan s_longestIdleTime = TimeSpan.FromDays(1);

    /// <summary>
    /// Bytes that are read and flushed at a time, 4,096 to 1 MiB; 65,536 by default. A slow client holds about this much beyond the server's own write buffer limit.
    /// </summary>
    public int SegmentSize { get; set; } = DefaultSegmentSize;

    /// <summary>Sends of fewer bytes than this are left to the server; 0, the default, leaves none.</summary>
    public long MinimumSize { get; set; }

    /// <summary>
    /// How many files stay open for the next request, on Linux, where they lie on a file system that is known to be local; 512 by default, 0 keeps none. Every request looks whether the path means
    /// the same file still, in the same state, so nothing is served that is not there any more. It is a quarter of the free descriptors at most (RLIMIT_NOFILE).
    /// </summary>
    public int MaxOpenFiles { get; set; } = 512;

    /// <summary>
    /// How long a file that nobody asks for stays open, 10 s by default, a day at most; <see cref="TimeSpan.Zero"/> keeps none. So long, and up to a second more, a deleted file may keep its room on the device, and an
    /// unmount has to wait. Nothing stays open once the application stops; one that is disposed of without being stopped
    /// closes its files by this time.
    /// </summary>
    public TimeSpan OpenFileIdleTime { get; set; } = TimeSpan.FromSeconds(10);

    /// <exception cref="ArgumentOutOfRangeException">A value is out of its range.</exception>
    internal void Validate()
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(SegmentSize, 4096);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(SegmentSize, MaxSegmentSize);
        ArgumentOutOfRangeException.ThrowIfNegative(MinimumSize);
        ArgumentOutOfRangeException.ThrowIfNegative(MaxOpenFiles);
        ArgumentOutOfRangeException.ThrowIfLessThan(OpenFileIdleTime, TimeSpan.Zero);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(OpenFileIdleTime, s_longestIdleTime);
    }
}
