namespace Pipelines.File.AspNetCore;

/// <summary>How <c>UseFilePipelines</c> sends files. The options are read once, when the middleware is added.</summary>
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
    /// <summary>The default of <see cref="BufferSize"/>, bytes.</summary>
    internal const int DefaultBufferSize = 64 * 1024;

    /// <summary>The largest <see cref="BufferSize"/>, bytes.</summary>
    internal const int MaxBufferSize = 1024 * 1024;

    // Less than the maximum of a timer, and more than anybody needs.
    private static readonly TimeSpan s_longestIdleTime = TimeSpan.FromDays(1);

    /// <summary>
    /// The number of bytes that are read and flushed at a time: 4,096 to 1 MiB; 65,536 by default. A slow client holds about this much
    /// memory, in addition to the server's own write buffer limit.
    /// </summary>
    public int BufferSize { get; set; } = DefaultBufferSize;

    /// <summary>The minimum number of bytes to send; the server sends smaller pieces itself. 0, the default, sends everything.</summary>
    public long MinimumSize { get; set; }

    /// <summary>
    /// The maximum number of files that stay open for the next request; 512 by default, 0 keeps none. Files stay open only on Linux, on
    /// file systems that are known to be local, and use at most a quarter of the free descriptors (RLIMIT_NOFILE). While so many are open,
    /// other files are opened for each request. Every request checks that the path still means the same file, unchanged, so a response
    /// never shows an old file.
    /// </summary>
    public int MaxOpenFiles { get; set; } = 512;

    /// <summary>
    /// How long a file stays open without a request for it; 10 s by default, at most a day. <see cref="TimeSpan.Zero"/> keeps none. For
    /// this time, and up to a second more, a deleted file may occupy its space on the device, and an unmount has to wait. All files are
    /// closed when the application stops.
    /// </summary>
    /// <remarks>An application that is disposed without being stopped closes its files after this time.</remarks>
    public TimeSpan OpenFileIdleTime { get; set; } = TimeSpan.FromSeconds(10);

    /// <exception cref="ArgumentOutOfRangeException">A value is out of its range.</exception>
    internal void Validate()
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(BufferSize, 4096, nameof(BufferSize));
        ArgumentOutOfRangeException.ThrowIfGreaterThan(BufferSize, MaxBufferSize, nameof(BufferSize));
        ArgumentOutOfRangeException.ThrowIfNegative(MinimumSize, nameof(MinimumSize));
        ArgumentOutOfRangeException.ThrowIfNegative(MaxOpenFiles, nameof(MaxOpenFiles));
        ArgumentOutOfRangeException.ThrowIfLessThan(OpenFileIdleTime, TimeSpan.Zero, nameof(OpenFileIdleTime));
        ArgumentOutOfRangeException.ThrowIfGreaterThan(OpenFileIdleTime, s_longestIdleTime, nameof(OpenFileIdleTime));
    }
}
