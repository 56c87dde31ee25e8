namespace Pipelines.File;

/// <summary>One line of a log that a <see cref="LogFollower"/> has read.</summary>
public readonly struct FollowedLine
{
    /// <summary>The full path of the log, also while a rotated file of it is read.</summary>
    public string Path { get; internal init; }

    /// <summary>
    /// The bytes of the line without its line end (LF or CR LF). They are valid until the next step of the loop: copy what you want to
    /// keep.
    /// </summary>
    public ReadOnlyMemory<byte> Bytes { get; internal init; }

    /// <summary>
    /// The position after this line and its line end. Save it after you have used the line: the next start of the program then continues
    /// with the next line.
    /// </summary>
    public FileCheckpoint Checkpoint { get; internal init; }

    /// <summary>
    /// Whether the line ended with a line end. It is <see langword="false"/> in two cases: the line is torn, because its file ended without
    /// a line end and nobody writes to it any more; or it is a piece of a line that is longer than
    /// <see cref="LogFollowerOptions.MaxLineLength"/>, and then has exactly that many bytes.
    /// </summary>
    public bool HasLineEnd { get; internal init; }

    /// <summary>
    /// Whether lines are missing before this one, as far as anybody can know: nothing holds any more what was read last. That is so if the
    /// file of the checkpoint is gone, if a log was truncated and there is no copy of what was read of it, or if a compressed file is
    /// damaged. What copytruncate loses between its copy and the truncation nobody can know.
    /// </summary>
    public bool IsAfterGap { get; internal init; }

    /// <summary>Returns the line as text, decoded as UTF-8.</summary>
    public override string ToString() => Encoding.UTF8.GetString(Bytes.Span);
}
