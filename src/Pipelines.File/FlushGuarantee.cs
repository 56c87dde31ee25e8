namespace Pipelines.File;

/// <summary>What is true of the bytes once <see cref="FilePipeWriter.FlushAsync(System.Threading.CancellationToken)"/> has completed.</summary>
public enum FlushGuarantee
{
    /// <summary>
    /// They wait in memory for another thread, which writes them, in order, while the program goes on. The default. A write that fails is thrown by a later flush and by
    /// <see cref="FilePipeWriter.CompleteAsync"/>. If the process is killed, what is not written yet is lost.
    /// </summary>
    WriteBehind,

    /// <summary>The operating system has them (write(2) has returned): they survive the death of this process, not a power cut.</summary>
    Written,

    /// <summary>They are on the device: fdatasync(2), or FlushFileBuffers on Windows, has returned after they were written.</summary>
    Durable,
}
