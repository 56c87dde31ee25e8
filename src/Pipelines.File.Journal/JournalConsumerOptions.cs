namespace Pipelines.File;

/// <summary>How a <see cref="JournalConsumer"/> begins and follows.</summary>
public sealed record JournalConsumerOptions
{
    /// <summary>
    /// Where a consumer begins whose name is new: <see langword="false"/>, the default, with the oldest record, <see langword="true"/> with
    /// the next one that is appended.
    /// </summary>
    public bool BeginsAtEnd { get; set; }

    /// <summary>
    /// How often a consumer by folder polls for new records when it follows: 10 ms by default, and every 100 ms when there was none for
    /// a second. A consumer that the journal itself has opened does not poll.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is not longer than 0.</exception>
    public TimeSpan FollowInterval
    {
        get;
        set
        {
            ArgumentOutOfRangeException.ThrowIfLessThanOrEqual(value, TimeSpan.Zero);
            field = value;
        }
    } = JournalReader.DefaultInterval;
}
