using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;

namespace Pipelines.File;

/// <summary>
/// How a <see cref="Journal"/> writes. A journal takes a copy when it is opened. An option throws
/// <see cref="ArgumentOutOfRangeException"/> when it is set to a value that is out of range.
/// </summary>
/// <example>
/// <code>
/// using Pipelines.File;
///
/// JournalOptions options = new() { SegmentSize = 256L &lt;&lt; 20, RetainAge = TimeSpan.FromDays(7) };
/// await using Journal journal = await Journal.OpenAsync("events", options);
/// await journal.AppendAsync("first"u8.ToArray());
/// </code>
/// </example>
public sealed record JournalOptions
{
    /// <summary>The default of <see cref="SegmentSize"/>, bytes.</summary>
    internal const long DefaultSegmentSize = 64L * 1024 * 1024;

    private const long LeastSegmentSize = 8 * 1024;

    internal ILogger Log => Logger is null ? NullLogger.Instance : new QuietLogger(Logger);

    /// <summary>
    /// The name in metrics, activities and logs; <see langword="null"/>, the default, means that of the folder.
    /// </summary>
    public string? Name { get; set; }

    /// <summary>
    /// The folder of a journal that <see cref="JournalServiceCollectionExtensions.AddJournal"/> adds; <see langword="null"/>, the default,
    /// means the journal's name. <see cref="Journal.OpenAsync"/> has a parameter for the folder, and ignores this.
    /// </summary>
    public string? Folder { get; set; }

    /// <summary>
    /// Where the journal logs that it was opened and closed, each segment, and what has failed; <see langword="null"/>, the default:
    /// nowhere. A hosted journal logs to the host's by default.
    /// </summary>
    public ILogger? Logger { get; set; }

    /// <summary>
    /// The size of a segment file, in bytes: at least 8 KiB; 64 MiB by default. The next record that does not fit begins a new segment. A
    /// record that is longer than a segment gets one of its own.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is less than 8 KiB.</exception>
    public long SegmentSize { get; set => field = AtLeast(value, LeastSegmentSize); } = DefaultSegmentSize;

    /// <summary>The maximum length of a record, in bytes: 1 to 1 GiB; 16 MiB by default.</summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is out of that range.</exception>
    public int MaxRecordLength
    {
        get;
        set
        {
            ArgumentOutOfRangeException.ThrowIfGreaterThan(value, JournalFormat.MaxRecordLength);
            field = (int)AtLeast(value, 1);
        }
    } = 16 * 1024 * 1024;

    /// <summary>
    /// What is true of a record when its append completes; <see cref="FlushGuarantee.Durable"/> by default. With a weaker one, records that
    /// were acknowledged may be lost in a power failure or when the process is killed, always from the end.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is not a <see cref="Pipelines.File.FlushGuarantee"/>.</exception>
    public FlushGuarantee FlushGuarantee
    {
        get;
        set => field = Enum.IsDefined(value) ? value
            : throw new ArgumentOutOfRangeException(nameof(value), value, "Not a FlushGuarantee.");
    } = FlushGuarantee.Durable;

    /// <summary>
    /// Whether files are filled with zeros ahead of the records, the next segment while the current one is written;
    /// <see langword="true"/> by default. A commit then overwrites blocks that the file has already, which a device does in about half of
    /// the time. It is done only where that gains something: on ext4, XFS and their like on Linux.
    /// </summary>
    public bool PreallocateSegments { get; set; } = true;

    /// <summary>
    /// The number of bytes that are appended and not committed at which further appends wait, before the journal takes their records;
    /// 8 MiB by default. They go on at half of it.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is less than 1.</exception>
    public long PauseAppendThreshold { get; set => field = AtLeast(value, 1); } = 8 * 1024 * 1024;

    /// <summary>
    /// The number of bytes of segments to keep, at most, if possible; <see langword="null"/>, the default, keeps all. The oldest segments
    /// are removed when a new one begins and when the journal is opened. The segment that is written stays. What cannot be removed is tried
    /// again with the next one: <see cref="Journal.RetentionError"/>.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is negative.</exception>
    public long? RetainBytes { get; set => field = value is { } bytes ? AtLeast(bytes, 0) : null; }

    /// <summary>
    /// The age of the records to keep; <see langword="null"/>, the default, keeps all. A segment whose last record is older is removed when
    /// a new segment begins and when the journal is opened.
    /// </summary>
    /// <exception cref="ArgumentOutOfRangeException">The value is negative.</exception>
    public TimeSpan? RetainAge { get; set => field = value is { } age ? new TimeSpan(AtLeast(age.Ticks, 0)) : null; }

    /// <summary>
    /// Whether <see cref="RetainBytes"/> and <see cref="RetainAge"/> also remove what a registered <see cref="JournalConsumer"/> has not
    /// processed; <see langword="false"/> by default: a consumer that is not used any more keeps everything, until it is removed.
    /// </summary>
    public bool RetainsPastConsumers { get; set; }

    private static long AtLeast(long value, long least)
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(value, least);
        return value;
    }
}
