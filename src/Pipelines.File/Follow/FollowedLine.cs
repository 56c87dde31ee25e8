using System.Text;

namespace Pipelines.File;

/// <summary>One line of a log, as <see cref="LogFollower.ReadLinesAsync"/> gives it.</summary>
public readonly struct FollowedLine
{
    internal FollowedLine(ReadOnlyMemory<byte> bytes, bool hasLineEnd, bool isAfterGap, FileCheckpoint checkpoint)
    {
        Bytes = bytes;
        HasLineEnd = hasLineEnd;
        IsAfterGap = isAfterGap;
        Checkpoint = checkpoint;
    }

    /// <summary>The line without its line end (LF or CR LF). Valid until the next step of the loop: copy what is to be kept.</summary>
    public ReadOnlyMemory<byte> Bytes { get; }

    /// <summary>Behind this line and its line end. Stored together with what was made of the line, it lets the next start go on with the next line.</summary>
    public FileCheckpoint Checkpoint { get; }

    /// <summary>
    /// <see langword="false"/> where the line is torn: its file ended without a line end and is not written to any more, as when a writer was killed; or it is a piece of a line that is longer
    /// than <see cref="LogFollowerOptions.MaxLineLength"/>, and then has exactly that many bytes.
    /// </summary>
    public bool HasLineEnd { get; }

    /// <summary>
    /// Whether lines may be missing in front of this one: the file of the checkpoint was gone or was shorter than it says, or the file was cut while it was followed
    /// (copytruncate), when what was not read by then is in the copy alone.
    /// </summary>
    public bool IsAfterGap { get; }

    /// <summary>The line as text, read as UTF-8.</summary>
    public override string ToString() => Encoding.UTF8.GetString(Bytes.Span);
}
