namespace Pipelines.File;

/// <summary>
/// What is true of the bytes when <see cref="FilePipeWriter.FlushAsync(System.Threading.CancellationToken)"/> has completed.
/// </summary>
public enum FlushGuarantee
{
    /// <summary>
    /// The bytes are in memory, and another thread writes them in order while the program continues. This is the default. If the process
    /// ends before <see cref="FilePipeWriter.CompleteAsync"/> has completed, killed or because Main returns, bytes that are not written yet
    /// are lost. If a write fails, a later flush and <see cref="FilePipeWriter.CompleteAsync"/> throw its error.
    /// </summary>
    WriteBehind,

    /// <summary>
    /// The operating system has the bytes (write(2) has returned). They survive the end of this process, but not a power failure.
    /// </summary>
    Written,

    /// <summary>The bytes are on the device: after they were written, fdatasync(2), or FlushFileBuffers on Windows, has returned.</summary>
    Durable,
}
