using Pipelines.File.IO;
using Pipelines.File.Lines;

namespace Pipelines.File.Follow;

/// <summary>A file of a log that is being read, and how far its lines were given.</summary>
internal sealed class LogFile
{
    /// <summary>
    /// How many of the bytes that were read last are kept, bytes: they tell a file that was cut and has grown again from one that has only
    /// grown.
    /// </summary>
    private const int MaxKept = 64;

    /// <summary>How soon to look again at first, milliseconds.</summary>
    private const int FirstPause = 10;

    private readonly int _maxLineLength;
    private readonly byte[] _kept = new byte[MaxKept];
    private readonly ArrayBufferWriter<byte> _joined = new();
    private readonly int _interval;
    private int _keptLength;

    // Where the next line begins.
    private long _offset;
    private bool _isAfterGap;

    // That many bytes at the beginning of what is left hold no line feed.
    private long _searched;

    // Since when nothing has come, Environment.TickCount64; null: nobody has asked yet.
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

    /// <summary>Behind the last line that was given.</summary>
    internal FileCheckpoint Checkpoint => new(Identity, _offset);

    /// <summary>Behind what was read; bytes.</summary>
    internal long ReadEnd { get; private set; }

    /// <summary>It is left if the next read finds nothing.</summary>
    internal bool IsQuiet { get; set; }

    /// <summary>It is gone, and the system may give its identity to the next file that is made.</summary>
    internal bool IsReusable { get; set; }

    /// <summary>How long to wait before the next look: as long as nothing has come by now.</summary>
    internal TimeSpan NextPause
        => TimeSpan.FromMilliseconds(Math.Clamp(QuietTime.TotalMilliseconds, Math.Min(FirstPause, _interval), _interval));

    /// <summary>Since when nothing has come, as far as was seen.</summary>
    internal TimeSpan QuietTime => TimeSpan.FromMilliseconds(Environment.TickCount64 - (_quietSince ??= Environment.TickCount64));

    /// <summary>Something has come.</summary>
    internal void OnGrown()
    {
        _quietSince = Environment.TickCount64;
        IsQuiet = false;
    }

    /// <summary>
    /// Takes the next line off what was read; of one that is longer than allowed, a piece. <see langword="false"/>: what is left is the
    /// beginning of a line.
    /// </summary>
    internal bool TryTakeLine(ref ReadOnlySequence<byte> rest, out FollowedLine line)
    {
        ReadOnlySequence<byte> before = rest;
        bool hasLineEnd = LineSearch.TryCut(ref rest, _searched, out ReadOnlySequence<byte> bytes);

        // The byte behind the most may be the CR of a line end that has not come.
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
    /// Takes what is left when no line end comes any more. It may be longer than a line by the CR of a line end that has not come.
    /// </summary>
    internal FollowedLine TakeTornLine(ref ReadOnlySequence<byte> rest)
    {
        ReadOnlySequence<byte> torn = rest.Slice(0, Math.Min(rest.Length, _maxLineLength));
        rest = rest.Slice(torn.End);
        return Line(torn, hasLineEnd: false, torn.Length);
    }

    /// <summary>Keeps the last bytes that were read.</summary>
    /// <param name="buffer">What was read and not given before.</param>
    /// <param name="rest">What of it was not given yet.</param>
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
    /// Whether the last bytes that were read still are where they were. <see langword="false"/>: the file was cut, and has grown again. One
    /// that is shorter now was cut behind the read: the next read tells.
    /// </summary>
    /// <param name="path">The name that means the file.</param>
    internal bool HoldsWhatWasRead(string path)
    {
        Span<byte> now = stackalloc byte[MaxKept];
        int length = Read(path, now[.._keptLength], ReadEnd - _keptLength);
        return length < _keptLength || now[..length].SequenceEqual(_kept.AsSpan(0, length));
    }

    /// <summary>Reads bytes again. Less than 0: that cannot be done.</summary>
    private int Read(string path, Span<byte> bytes, long offset)
    {
        // What cannot seek gives every byte once.
        if (bytes.IsEmpty || Reader.Length is null)
        {
            return -1;
        }

        try
        {
            // The overlapped handle of the reader is not for RandomAccess.
            using SafeFileHandle? opened = OperatingSystem.IsWindows()
                ? System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete) : null;
            if (opened is not null && FileStatus.TryOf(opened, out FileStatus status) && status.Identity != Identity)
            {
                // The name means another file by now.
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
