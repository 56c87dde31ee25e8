namespace ShipSample;

/// <summary>What the command line, or the environment, asks for.</summary>
/// <param name="To">Where batches are sent to.</param>
/// <param name="Logs">A path or a pattern.</param>
/// <param name="Checkpoint">Where to keep how far each log was shipped.</param>
internal sealed record ShipSettings(Uri To, string Logs, string Checkpoint)
{
    /// <summary>How many lines and bytes a batch has at most, and how long a line waits for more.</summary>
    internal const int MaxLines = 1000;
    internal const int MaxBytes = 1024 * 1024;
    internal static readonly TimeSpan MaxDelay = TimeSpan.FromSeconds(1);

    internal static ShipSettings? From(IConfiguration configuration)
        => Uri.TryCreate(configuration["to"], UriKind.Absolute, out Uri? to) && configuration["logs"] is { Length: > 0 } logs
            && configuration["checkpoint"] is { Length: > 0 } checkpoint
            ? new ShipSettings(to, logs, checkpoint)
            : null;
}
