using System.Buffers;
using Microsoft.Win32.SafeHandles;
using Pipelines.File.IO;

namespace Pipelines.File.Follow;

/// <summary>A file of a log that is being read, and how far its lines were given.</summary>
internal sealed class LogFile
{
    /// <summary>How many bytes in front of <see cref="_offset"/> are kept, bytes: they tell a file that was cut and has grown again from one that has only grown.</summary>
    private const int MaxKept = 64;

    private const int FirstPause = 10;

    private readonly LineSplitter _splitter;
    private readonly byte[] _kept = new byte[MaxKept];
    private readonly int _interval;
    private int _keptLength;
    private int _pause = FirstPause;

    // Where the next line begins.
    private long _offset;
    private bool _isAfterGap;

    // Since when nothing has come, Environment.TickCount64; null: nobody has asked yet.
    private long? _quietSince;

    internal LogFile(FilePipeReader reader, LogName name, long offset, bool isNamed, bool isAfterGap, LogFollowerOptions options)
    {
        Reader = reader;
        Identity = name.Identity;
        _splitter = new LineSplitter(options.MaxLineLength);
        _offset = offset;
        _isAfterGap = isAfterGap;
        _interval = (int)options.FollowInterval.TotalMilliseconds;
        if (!isNamed)
        {
            _quietSince = Environment.TickCount64 - Math.Max(0, (long)(DateTime.UtcNow - name.LastWritten).TotalMilliseconds);
        }
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

    /// <summary>How long to wait before the next look: longer the longer nothing has come.</summary>
    internal TimeSpan NextPause()
    {
        int pause = Math.Min(_pause, _interval);
        _pause = Math.Min(_pause * 2, _interval);
        return TimeSpan.FromMilliseconds(pause);
    }

    /// <summary>Since when nothing has come, as far as was seen.</summary>
    internal TimeSpan QuietTime => TimeSpan.FromMilliseconds(Environment.TickCount64 - (_quietSince ??= Environment.TickCount64));

    /// <summary>Something has come.</summary>
    internal void OnGrown()
    {
        _quietSince = Environment.TickCount64;
        _pause = FirstPause;
        IsQuiet = false;
    }

    /// <summary>Takes the next line off what was read.</summary>
    internal bool TryTakeLine(ref ReadOnlySequence<byte> rest, out FollowedLine line)
    {
        long before = rest.Length;
        bool isLine = _splitter.TryTake(ref rest, out ReadOnlyMemory<byte> bytes, out bool hasLineEnd);
        line = isLine ? Line(bytes, hasLineEnd, before - rest.Length) : default;
        return isLine;
    }

    /// <summary>What is left when no line end comes any more.</summary>
    internal FollowedLine TakeTornLine(ref ReadOnlySequence<byte> rest)
    {
        FollowedLine line = Line(_splitter.Join(rest), hasLineEnd: false, rest.Length);
        rest = rest.Slice(rest.End);
        return line;
    }

    /// <summary>Keeps the last bytes in front of the next line.</summary>
    /// <param name="buffer">What was read.</param>
    /// <param name="rest">What of it was not given yet.</param>
    internal void Keep(ReadOnlySequence<byte> buffer, ReadOnlySequence<byte> rest)
    {
        ReadEnd = _offset + rest.Length;
        long given = buffer.Length - rest.Length;
        if (given > 0)
        {
            _keptLength = (int)Math.Min(given, MaxKept);
            buffer.Slice(given - _keptLength, _keptLength).CopyTo(_kept);
        }
    }

    /// <summary>Whether the last bytes that were given still are where they were. <see langword="false"/>: the file was cut, and has grown again.</summary>
    /// <param name="path">The name that means the file.</param>
    internal bool HoldsWhatWasRead(string path)
    {
        Span<byte> now = stackalloc byte[MaxKept];
        try
        {
            // The overlapped handle of the reader is not for RandomAccess.
            using SafeFileHandle? opened = OperatingSystem.IsWindows() ? System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete) : null;
            if (opened is not null && FileStatus.TryOf(opened, out FileStatus status) && status.Identity != Identity)
            {
                // The name means another file by now.
                return true;
            }

            int length = RandomAccess.Read(opened ?? Reader.OpenedFile.Handle, now[.._keptLength], _offset - _keptLength);
            return now[..length].SequenceEqual(_kept.AsSpan(0, _keptLength));
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or NotSupportedException)
        {
            return true;
        }
    }

    private FollowedLine Line(ReadOnlyMemory<byte> bytes, bool hasLineEnd, long length)
    {
        _offset += length;
        FollowedLine line = new(bytes, hasLineEnd, _isAfterGap, Checkpoint);
        _isAfterGap = false;
        return line;
    }
}
