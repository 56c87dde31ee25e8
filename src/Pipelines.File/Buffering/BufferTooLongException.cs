namespace Pipelines.File;

/// <summary>More bytes were written to a <see cref="FileBufferingPipe"/> than <see cref="FileBufferingPipeOptions.MaxLength"/>.</summary>
/// <param name="maxLength">The maximum, bytes.</param>
public sealed class BufferTooLongException(long maxLength)
    : IOException(string.Create(CultureInfo.InvariantCulture,
        $"More than {maxLength} bytes were written to the pipe, the maximum that {nameof(FileBufferingPipeOptions.MaxLength)} sets."))
{
    /// <summary>The maximum that was set, in bytes.</summary>
    public long MaxLength => maxLength;
}
