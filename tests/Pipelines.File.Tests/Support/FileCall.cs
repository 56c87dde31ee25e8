namespace FilePipelines.Tests;

/// <summary>One system call as far as a power failure may undo it, or something that the caller was told.</summary>
internal abstract record FileCall
{
    /// <summary>A new file, with a name or without.</summary>
    internal sealed record Make(int File, string? Path) : FileCall;

    internal sealed record Write(int File, long Offset, byte[] Bytes) : FileCall;

    internal sealed record Sync(int File) : FileCall;

    /// <summary>A file without a name gets one.</summary>
    internal sealed record Link(int File, string Path) : FileCall;

    internal sealed record LinkName(string From, string To) : FileCall;

    internal sealed record Rename(string From, string To) : FileCall;

    internal sealed record Unlink(string Path) : FileCall;

    internal sealed record SyncFolder : FileCall;

    /// <summary>From here on the caller may rely on it.</summary>
    internal sealed record Acknowledge(long Value) : FileCall;
}
