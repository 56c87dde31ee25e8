namespace Pipelines.File;

/// <summary>
/// How a <see cref="LogFollower"/> follows a log. An instance is immutable, and any number of followers may share it. A value that is out
/// of range throws when a follower is created.
/// </summary>
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
public sealed class LogFollowerOptions
{
    internal static LogFollowerOptions Default { get; } = new();

    /// <summary>
    /// Where to continue: the <see cref="FollowedLine.Checkpoint"/> of the last line that was used. <see langword="null"/>, the default,
    /// begins with the file that has the name of the log now, and reads no rotated file. So does <see langword="default"/>. Only for a
    /// follower of one log: one path that is no pattern, or a pattern with <see cref="InNameOrder"/>. Others need
    /// <see cref="Checkpoints"/>.
    /// </summary>
    public FileCheckpoint? Checkpoint { get; init; }

    /// <summary>
    /// Where to continue in each log, by its full path: what a <see cref="CheckpointFile"/> has kept. A log that is not in it begins as
    /// without a checkpoint. Read when an enumeration begins. <see langword="null"/>, the default, means none.
    /// </summary>
    public IReadOnlyDictionary<string, FileCheckpoint>? Checkpoints { get; init; }

    /// <summary>
    /// Without a checkpoint: how many of the last lines of the existing file to read. <see langword="null"/>, the default, reads all lines;
    /// 0 reads only lines that are written from now on. A file that is created later is read from its beginning.
    /// </summary>
    public long? LastLines { get; init; }

    /// <summary>
    /// How long a renamed file must be quiet before the follower leaves it; 1 s by default. Until the next file holds bytes, the writer may
    /// still use the renamed one, so the follower stays. It also leaves a file that it does not find beside the log any more.
    /// </summary>
    public TimeSpan QuietTime { get; init; } = TimeSpan.FromSeconds(1);

    /// <summary>
    /// How often the follower polls for rotations and for new logs, and polls a log itself if the system does not report its growth. 250 ms
    /// by default; 1 ms to 1 day.
    /// </summary>
    public TimeSpan FollowInterval { get; init; } = TimeSpan.FromMilliseconds(250);

    /// <summary>
    /// The names that the log gets when it is rotated, as patterns: <c>{name}.#</c> (log.1) and <c>{name}-#</c> (log-20261122) by default.
    /// <c>{name}</c> is the name of the log, <c>{stem}</c> the name without its extension, <c>{extension}</c> the extension with its dot.
    /// <c>#</c> stands for a number or a date: digits, with <c>-</c>, <c>_</c> or <c>.</c> between them; <c>*</c> for any text. A pattern
    /// has one of them. It may begin with a folder, relative to that of the log: <c>old/{name}.#</c>. Each pattern also
    /// matches names with <c>.gz</c> after it: these files are read as gzip(1) has compressed them.
    /// </summary>
    public IReadOnlyList<string> RotatedNames { get; init; } = ["{name}.#", "{name}-#"];

    /// <summary>
    /// Whether the files that match a pattern are one log, in the order of their names: for writers that roll forward, as Serilog and NLog
    /// do. <see langword="false"/> by default: each is a log of its own. Digits are compared as numbers, and a name comes before those that
    /// go on after it: <c>app-20261128.log</c>, <c>app-20261128_001.log</c>, <c>app-20261129.log</c>. The last file is the one that is
    /// written to. The log's path, and the key of its checkpoint, is the pattern; <see cref="RotatedNames"/> are not used.
    /// </summary>
    public bool InNameOrder { get; init; }

    /// <summary>
    /// The maximum length of a line without its line end, in bytes; 1 MiB by default. A longer line comes in pieces of that length
    /// (<see cref="FollowedLine.HasLineEnd"/>).
    /// </summary>
    public int MaxLineLength { get; init; } = 1024 * 1024;

    /// <summary>
    /// The enumeration ends when the caller has waited for so long, at most 49 days, and no line has come. <see langword="null"/>, the
    /// default: it does not end.
    /// </summary>
    public TimeSpan? IdleTimeout { get; init; }

    /// <summary>
    /// What to do if a file cannot be opened, or a folder cannot be listed: it is called with the path of the log, or the pattern, and the
    /// error, within the first step of the loop or on a thread of the pool, and that is tried again. <see langword="null"/>, the default:
    /// the enumeration throws the error.
    /// </summary>
    public Action<string, Exception>? OnUnreadable { get; init; }

    /// <summary>
    /// The clock for all waits; that of the system by default. Where the system does not report changes, a file that grows is polled by
    /// the clock of the system.
    /// </summary>
    public TimeProvider TimeProvider { get; init; } = TimeProvider.System;

    /// <exception cref="ArgumentException">A value cannot be used.</exception>
    internal void Validate()
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(IdleTimeout ?? TimeSpan.MaxValue, TimeSpan.Zero, nameof(IdleTimeout));
        ArgumentOutOfRangeException.ThrowIfGreaterThan(IdleTimeout ?? TimeSpan.Zero, TimeSpan.FromDays(49), nameof(IdleTimeout));
        ArgumentNullException.ThrowIfNull(TimeProvider);
        ArgumentOutOfRangeException.ThrowIfNegative(LastLines.GetValueOrDefault(), nameof(LastLines));
        ArgumentOutOfRangeException.ThrowIfLessThan(QuietTime, TimeSpan.Zero);
        ArgumentOutOfRangeException.ThrowIfLessThan(FollowInterval, TimeSpan.FromMilliseconds(1));
        ArgumentOutOfRangeException.ThrowIfGreaterThan(FollowInterval, TimeSpan.FromDays(1));
        ArgumentNullException.ThrowIfNull(RotatedNames);
        ArgumentOutOfRangeException.ThrowIfLessThan(MaxLineLength, 1);
        foreach (string pattern in RotatedNames)
        {
            ArgumentException.ThrowIfNullOrEmpty(pattern, nameof(RotatedNames));
            ReadOnlySpan<char> name = Path.GetFileName(pattern.AsSpan());
            if (name.Contains('?') || name.Count('#') + name.Count('*') > 1)
            {
                throw new ArgumentException($"'{pattern}' holds ?, or more than one of # and *.", nameof(RotatedNames));
            }
        }
    }
}
