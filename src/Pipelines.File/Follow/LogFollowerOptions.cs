namespace Pipelines.File;

/// <summary>How a <see cref="LogFollower"/> follows a log. An instance is immutable, checked where it is used, and may be shared by any number of followers.</summary>
/// <example>
/// <code>
/// using Pipelines.File;
///
/// LogFollower follower = new("service.log", new LogFollowerOptions { LastLines = 10 });
/// await foreach (FollowedLine line in follower.ReadLinesAsync())
/// {
///     Console.WriteLine(line);
/// }
/// </code>
/// </example>
public sealed record LogFollowerOptions
{
    internal static LogFollowerOptions Default { get; } = new();

    /// <summary>Where to go on: <see cref="FollowedLine.Checkpoint"/> of the last line that was used. <see langword="null"/>, the default: nothing of the log was used yet.</summary>
    public FileCheckpoint? Checkpoint { get; init; }

    /// <summary>
    /// Without a checkpoint, how many of the last lines of a file that is there at the start are given: <see langword="null"/>, the default, all of them; 0, only what comes from then on.
    /// A file that comes later is read from its beginning.
    /// </summary>
    public long? LastLines { get; init; }

    /// <summary>
    /// How long nothing has come to a renamed file before it is left; 1 s by default. It is left only when the file that follows it holds bytes, as its writer may go on with it until then, or
    /// when it is not found beside the log any more.
    /// </summary>
    public TimeSpan QuietTime { get; init; } = TimeSpan.FromSeconds(1);

    /// <summary>How often the log is looked at where the system does not tell of changes, and while its name means no file; 250 ms by default, 1 ms to 24 days.</summary>
    public TimeSpan FollowInterval { get; init; } = TimeSpan.FromMilliseconds(250);

    /// <summary>
    /// What a log is renamed to when it is rotated: <c>{name}.#</c> (log.1) and <c>{name}-#</c> (log-20261122) by default. <c>{name}</c> is the name of the log, <c>{stem}</c> the same
    /// without its extension, <c>{extension}</c> that extension with its dot; <c>*</c> is any text, <c>?</c> any character, <c>#</c> a number or a date: digits, with <c>-</c>, <c>_</c> or <c>.</c> between them.
    /// A pattern may begin with a folder, relative to that of the log: <c>old/{name}.#</c>. Compressed files must not be among them.
    /// </summary>
    public IReadOnlyList<string> RotatedNames { get; init; } = ["{name}.#", "{name}-#"];

    /// <summary>The most bytes of a line without its line end; 1 MiB by default. A longer line comes in pieces of that length (<see cref="FollowedLine.HasLineEnd"/>).</summary>
    public int MaxLineLength { get; init; } = 1024 * 1024;

    /// <exception cref="ArgumentException">A value cannot be used.</exception>
    internal void Validate()
    {
        ArgumentOutOfRangeException.ThrowIfNegative(LastLines.GetValueOrDefault(), nameof(LastLines));
        ArgumentOutOfRangeException.ThrowIfLessThan(QuietTime, TimeSpan.Zero);
        ArgumentOutOfRangeException.ThrowIfLessThan(FollowInterval, TimeSpan.FromMilliseconds(1));
        ArgumentOutOfRangeException.ThrowIfGreaterThan(FollowInterval, TimeSpan.FromMilliseconds(int.MaxValue));
        ArgumentNullException.ThrowIfNull(RotatedNames);
        ArgumentOutOfRangeException.ThrowIfLessThan(MaxLineLength, 1);
        foreach (string pattern in RotatedNames)
        {
            ArgumentException.ThrowIfNullOrEmpty(pattern, nameof(RotatedNames));
        }
    }
}
