namespace Pipelines.File;

/// <summary>
/// One line of a log that a <see cref="LogFollower"/> has read. <b>Its bytes are valid until the next step of the loop</b> and throw then;
/// a <see cref="Copy"/> is valid for ever.
/// </summary>
public readonly struct FollowedLine
{
    private readonly ReadOnlyMemory<byte> _bytes;
    private readonly Loan? _loan;
    private readonly int _number;

    internal FollowedLine(string path, ReadOnlyMemory<byte> bytes, Loan loan)
        => (Path, _bytes, _loan, _number) = (path, bytes, loan, loan.Number);

    /// <summary>The full path of the log, also while a rotated file of it is read.</summary>
    public string Path { get; }

    /// <summary>
    /// The bytes of the line without its line end (LF or CR LF). They are valid until the next step of the loop: <see cref="Copy"/> keeps
    /// them.
    /// </summary>
    /// <exception cref="InvalidOperationException">The loop that returned the line has gone on.</exception>
    public ReadOnlyMemory<byte> Bytes
    {
        get
        {
            Loan.ThrowIfOver(_loan, _number);
            return _bytes;
        }
        private init => (_bytes, _loan) = (value, null);
    }

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

    /// <summary>Returns the same line with a copy of its bytes, which may be kept.</summary>
    /// <inheritdoc cref="Bytes" path="/exception"/>
    public FollowedLine Copy() => this with { Bytes = Bytes.ToArray() };

    /// <summary>The same line, lent for one step of the loop.</summary>
    internal FollowedLine LentBy(Loan loan)
        => new(Path, _bytes, loan) { Checkpoint = Checkpoint, HasLineEnd = HasLineEnd, IsAfterGap = IsAfterGap };

    /// <summary>Returns the line as text, decoded as UTF-8.</summary>
    /// <inheritdoc cref="Bytes" path="/exception"/>
    public override string ToString() => Encoding.UTF8.GetString(Bytes.Span);
}
