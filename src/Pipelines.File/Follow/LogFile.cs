using Pipelines.File.IO;
using Pipelines.File.Lines;

namespace Pipelines.File.Follow;

/// <summary>A file of a log that is being read, and the position of its next line. Used by one caller at a time.</summary>
internal sealed class LogFile
{
    /// <summary>
    /// The maximum number of bytes that are kept of those that were read last. They tell a file that was truncated and has grown again from
    /// one that has only grown.
    /// </summary>
    private const int MaxKept = 64;

    /// <summary>The shortest pause before the next look at the end, milliseconds, unless the interval is shorter.</summary>
    private const int FirstPause = 10;

    private readonly int _maxLineLength;
    private readonly byte[] _kept = new byte[MaxKept];
    private readonly ArrayBufferWriter<byte> _joined = new();
    private readonly int _interval;
    private int _keptLength;

    // The file offset of the next line, bytes.
    private long _offset;
    private bool _isAfterGap;

    // How many bytes at the beginning of the incomplete line are known to hold no line feed.
    private long _searched;

    // Since when the file has not grown, as far as was seen, Environment.TickCount64; null: nobody has asked yet.
    private long? _quietSince;

    internal LogFile(FilePipeReader reader, LogName name, long offset, bool isNamed, bool isAfterGap, LogFollowerOptions options)
    {
        Reader = reader;
        Identity = name.Identity;
        _maxLineLength = options.MaxLineLength;
        ReadEnd = _offset = offset;
        _isAfterGap = isAfterGap;
        _interval = (int)options.FollowInterval.TotalMilliseconds;
        if (!isNamed)
        {
            _quietSince = Environment.TickCount64 - Math.Max(0, (long)(DateTime.UtcNow - name.LastWritten).TotalMilliseconds);
        }

        int inFront = (int)Math.Min(offset, MaxKept);
        _keptLength = Math.Max(0, Read(name.Path, _kept.AsSpan(0, inFront), offset - inFront));
    }

    internal FilePipeReader Reader { get; }

    internal FileIdentity Identity { get; }

    /// <summary>The position after the last line that was returned.</summary>
    internal FileCheckpoint Checkpoint => new(Identity, _offset);

    /// <summary>The file offset after the last byte that was read.</summary>
    internal long ReadEnd { get; private set; }

    /// <summary>Whether the file has been quiet for long enough: it is left if the next read finds nothing.</summary>
    internal bool IsQuiet { get; set; }

    /// <summary>Whether the file is gone and the system may give its identity to a new file.</summary>
    internal bool IsReusable { get; set; }

    /// <summary>How long to wait before the next look: as long as the file has been quiet, from 10 ms up to the interval.</summary>
    internal TimeSpan NextPause
        => TimeSpan.FromMilliseconds(Math.Clamp(QuietTime.TotalMilliseconds, Math.Min(FirstPause, _interval), _interval));

    /// <summary>How long the file has not grown, as far as was seen. The first call begins the measurement if none has begun.</summary>
    internal TimeSpan QuietTime => TimeSpan.FromMilliseconds(Environment.TickCount64 - (_quietSince ??= Environment.TickCount64));

    /// <summary>Records that the file has grown.</summary>
    internal void OnGrown()
    {
        _quietSince = Environment.TickCount64;
        IsQuiet = false;
    }

    /// <summary>
    /// Takes the next line from the bytes that were read, or a piece of a line that is longer than
    /// <see cref="LogFollowerOptions.MaxLineLength"/>. Returns <see langword="false"/> if the rest is the beginning of a line.
    /// </summary>
    internal bool TryTakeLine(ref ReadOnlySequence<byte> rest, out FollowedLine line)
    {
        ReadOnlySequence<byte> before = rest;
        bool hasLineEnd = LineSearch.TryCut(ref rest, _searched, out ReadOnlySequence<byte> bytes);

        // The first byte over the maximum may be the CR of a line end whose LF has not come.
        bool isPiece = bytes.Length > _maxLineLength + (hasLineEnd ? 0L : 1);
        if (isPiece)
        {
            bytes = before.Slice(0, _maxLineLength);
            rest = before.Slice(bytes.End);
        }

        _searched = hasLineEnd ? 0 : rest.Length;
        bool isTaken = isPiece || hasLineEnd;
        line = isTaken ? Line(bytes, hasLineEnd && !isPiece, before.Length - rest.Length) : default;
        return isTaken;
    }

    /// <summary>
    /// Takes the rest as a line without a line end, because none will come. If the rest is one byte longer than a line may be, with the CR
    /// of a line end that is incomplete, another call takes that byte.
    /// </summary>
    internal FollowedLine TakeTornLine(ref ReadOnlySequence<byte> rest)
    {
        ReadOnlySequence<byte> torn = rest.Slice(0, Math.Min(rest.Length, _maxLineLength));
        rest = rest.Slice(torn.End);
        return Line(torn, hasLineEnd: false, torn.Length);
    }

    /// <summary>Keeps the last bytes that were read, for <see cref="HoldsWhatWasRead"/>.</summary>
    /// <param name="buffer">The buffer of the read.</param>
    /// <param name="rest">The part of it that was not returned as lines.</param>
    internal void Keep(ReadOnlySequence<byte> buffer, ReadOnlySequence<byte> rest)
    {
        long end = _offset + rest.Length;
        int added = (int)Math.Min(end - ReadEnd, MaxKept);
        int left = Math.Min(_keptLength, MaxKept - added);
        _kept.AsSpan(_keptLength - left, left).CopyTo(_kept);
        buffer.Slice(buffer.Length - added).CopyTo(_kept.AsSpan(left));
        _keptLength = left + added;
        ReadEnd = end;
    }

    /// <summary>
    /// Whether the last bytes that were read are still at their offsets in the file. <see langword="false"/> means that the file was
    /// truncated and has grown again. Of a file that is shorter now, or that cannot be read again, it returns <see langword="true"/>: the
    /// next read finds that out.
    /// </summary>
    /// <param name="path">A path of the file.</param>
    internal bool HoldsWhatWasRead(string path)
    {
        Span<byte> now = stackalloc byte[MaxKept];
        int length = Read(path, now[.._keptLength], ReadEnd - _keptLength);
        return length < _keptLength || now[..length].SequenceEqual(_kept.AsSpan(0, length));
    }

    /// <summary>Reads bytes again. Returns their number, or -1 if that is impossible.</summary>
    private int Read(string path, Span<byte> bytes, long offset)
    {
        // A file that cannot seek returns every byte once only.
        if (bytes.IsEmpty || Reader.Length is null)
        {
            return -1;
        }

        try
        {
            // Windows: RandomAccess must not use the reader's overlapped handle, so it gets one of its own.
            using SafeFileHandle? opened = OperatingSystem.IsWindows()
                ? System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete) : null;
            if (opened is not null && FileStatus.TryOf(opened, out FileStatus status) && status.Identity != Identity)
            {
                // The path leads to another file by now.
                return -1;
            }

            return RandomAccess.Read(opened ?? Reader.OpenedFile.Handle, bytes, offset);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or NotSupportedException)
        {
            return -1;
        }
    }

    private FollowedLine Line(ReadOnlySequence<byte> bytes, bool hasLineEnd, long length)
    {
        _offset += length;
        FollowedLine line =
            new() { Bytes = _joined.Join(bytes), HasLineEnd = hasLineEnd, IsAfterGap = _isAfterGap, Checkpoint = Checkpoint };
        _isAfterGap = false;
        return line;
    }
}
