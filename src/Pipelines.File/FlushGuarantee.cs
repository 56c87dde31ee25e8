namespace Pipelines.File;

/// <summary>What is true of the bytes once <see cref="FilePipeWriter.FlushAsync(System.Threading.CancellationToken)"/> has completed.</summary>
public enum FlushGuarantee
{
    /// <summary>
    /// They are handed over and will be written, in order, without another call; an error shows up in a later flush or in
    /// <see cref="FilePipeWriter.CompleteAsync"/>. The default.
    /// </summary>
    WriteBehind,

    /// <summary>The operating system has them (write(2) has returned): they survive the death of this process, not a power cut.</summary>
    Written,

    /// <summary>They are on the device: fdatasync(2), or FlushFileBuffers on Windows, has returned after they were written.</summary>
    Durable,
}
