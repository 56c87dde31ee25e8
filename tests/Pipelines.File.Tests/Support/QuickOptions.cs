namespace FilePipelines.Tests;

/// <summary>Options of a follower that leaves a renamed file soon: the tests' writers have moved on by then.</summary>
internal sealed record QuickOptions
{
    public FileCheckpoint? Checkpoint { get; init; }

    public IReadOnlyDictionary<string, FileCheckpoint>? Checkpoints { get; init; }

    public long? LastLines { get; init; }

    public TimeSpan QuietTime { get; init; } = TimeSpan.FromMilliseconds(50);

    public TimeSpan FollowInterval { get; init; } = TimeSpan.FromMilliseconds(25);

    public IReadOnlyList<string>? RotatedNames { get; init; }

    public bool InNameOrder { get; init; }

    public int? MaxLineLength { get; init; }

    public TimeSpan? IdleTimeout { get; init; }

    public Action<string, Exception>? OnUnreadable { get; init; }

    public TimeProvider TimeProvider { get; init; } = TimeProvider.System;

    public static implicit operator LogFollowerOptions(QuickOptions quick)
    {
        LogFollowerOptions defaults = new();
        return new LogFollowerOptions
        {
            Checkpoint = quick.Checkpoint,
            Checkpoints = quick.Checkpoints,
            LastLines = quick.LastLines,
            QuietTime = quick.QuietTime,
            FollowInterval = quick.FollowInterval,
            RotatedNames = quick.RotatedNames ?? defaults.RotatedNames,
            InNameOrder = quick.InNameOrder,
            MaxLineLength = quick.MaxLineLength ?? defaults.MaxLineLength,
            IdleTimeout = quick.IdleTimeout,
            OnUnreadable = quick.OnUnreadable,
            TimeProvider = quick.TimeProvider,
        };
    }
}
