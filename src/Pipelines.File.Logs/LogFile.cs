namespace Pipelines.File;

/// <summary>
/// An opened file of a log. Its handle keeps the file, whatever happens to its names. <see cref="LogNames"/> opens it, and its tail closes
/// it.
/// </summary>
internal sealed partial class LogFile(SharedFile file, LogName name) : IDisposable
{
    private const int SeekData = 3;

    // What IsAsBefore has seen. Owned by the search.
    private (long Offset, ulong Hash) _before;

    // What the tail has read: the offset behind it, and its last bytes. The lock guards it.
    private readonly Lock _reading = new();
    private (long Offset, int Length, uint Hash) _read;

    internal SafeFileHandle Handle => file.Handle;

    /// <summary>The name that it was opened by.</summary>
    internal LogName Name => name;

    /// <summary>The identity that checkpoints get: of a copy that truncating a log has left, that of the log's file.</summary>
    internal FileIdentity Identity { get; set; } = name.Identity;

    /// <summary>The offset, bytes, in the uncompressed content, where reading begins.</summary>
    internal long Offset { get; set; }

    /// <summary>
    /// The hash of what is before it, as the search has found it; 0: unknown. If it is another one when the tail begins, the file was
    /// truncated in between.
    /// </summary>
    internal ulong OffsetHash { get; set; }

    /// <summary>Whether lines may be missing before the first line of the file.</summary>
    internal bool IsAfterGap { get; set; }

    /// <summary>Whether nobody writes to it: it is a copy that was read on.</summary>
    internal bool IsFinal { get; set; }

    /// <summary>Whether its end is final: nobody writes to a compressed file either.</summary>
    internal bool IsComplete => IsFinal || Name.IsCompressed;

    /// <summary>Whether it may be a copy of another file of the log.</summary>
    internal bool MayBeCopy { get; set; }

    /// <summary>Whether all of it was read: only its place among the others matters.</summary>
    internal bool IsRead { get; set; }

    /// <summary>
    /// The first bytes of a file that was truncated, as they were when the files before it were listed. If it begins otherwise by now, it
    /// was truncated again, and there is another copy. Empty: unknown. Null: the file was not truncated.
    /// </summary>
    internal byte[]? Beginning { get; set; }

    /// <summary>Whether the file has the log's name. If not, the next says since when, as a timestamp of the options' clock.</summary>
    internal bool HasName { get => Volatile.Read(ref field); set => Volatile.Write(ref field, value); } = true;

    internal long NamelessSince { get; private set; }

    /// <summary>Whether the file was not found by any name.</summary>
    internal bool IsGone { get; set; }

    /// <summary>The length of the file, compressed as it is, bytes; 0 if it is closed or cannot be asked.</summary>
    internal long Length => TryAsk(out FileStatus status) ? status.Length : 0;

    /// <summary>
    /// Whether a listing means this file. Its identity is asked for again: the first write to a file of an overlay's lower layer changes
    /// it.
    /// </summary>
    internal bool IsIt(LogName other)
        => other.Identity == name.Identity
            || (other.Identity != default && TryAsk(out FileStatus status) && other.Identity == status.Identity);

    internal void LoseName(long since)
    {
        if (HasName)
        {
            (NamelessSince, HasName) = (since, false);
        }
    }

    /// <summary>Opens a file.</summary>
    /// <exception cref="FileNotFoundException">
    /// The path leads to no file or to another one by now, or it could not be looked at: then this may be any file.
    /// </exception>
    /// <exception cref="IOException">It cannot be opened.</exception>
    /// <exception cref="UnauthorizedAccessException">You may not read it, or it is a folder.</exception>
    /// <exception cref="NotSupportedException">It is no regular file.</exception>
    internal static LogFile Open(LogName name)
    {
        LogFile opened = new(SharedFile.Open(name.Path), name);
        if (!opened.TryAsk(out FileStatus status) || status.Identity == name.Identity)
        {
            return opened;
        }

        opened.Dispose();
        throw new FileNotFoundException("The file was renamed.", name.Path);
    }

    /// <summary>
    /// Whether this can be the file of a checkpoint: it holds the same bytes before the offset. True if the bytes are unknown.
    /// </summary>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    internal bool Holds(long offset, ulong hash, CancellationToken cancellationToken)
        => hash == 0 || offset == 0 ? Name.IsCompressed || Length >= offset : HashAt(offset, cancellationToken).Hash == hash;

    /// <summary>
    /// Whether the file was not truncated: it holds what the tail has read, or if that is nothing, all that it held when this was asked
    /// last.
    /// </summary>
    internal bool IsAsBefore(CancellationToken cancellationToken)
    {
        (long Offset, int Length, uint Hash) read;
        lock (_reading)
        {
            read = _read;
        }

        if (read.Offset > 0)
        {
            Span<byte> last = stackalloc byte[LogContent.MaxKnown];
            last = last[..LogContent.Read(Handle, Name.Path, read.Offset - read.Length, last[..read.Length])];
            return LogContent.HashOfBeginning(last) == read.Hash;
        }

        (long, ulong) now = HashAt(long.MaxValue, cancellationToken);
        bool isAsBefore = Holds(_before.Offset, _before.Hash, cancellationToken);
        _before = isAsBefore ? now : _before;
        return isAsBefore;
    }

    /// <summary>The first bytes, at most 1,024.</summary>
    internal byte[] ReadBeginning()
    {
        Span<byte> first = stackalloc byte[LogContent.MaxKnown];
        return [.. first[..LogContent.Read(Handle, Name.Path, 0, first)]];
    }

    /// <summary>
    /// Whether the file is a copy of what was read, but has less: more was written after the copy was made, and read.
    /// </summary>
    internal bool HoldsLess(long offset, ulong hash, CancellationToken cancellationToken)
        => offset >= LogContent.MaxKnown && (Name.IsCompressed || Length < offset)
            && LogContent.HasSameBeginning(hash, HashAt(LogContent.MaxKnown, cancellationToken).Hash);

    /// <summary>
    /// Whether these first bytes are still those of the file, and those of <see cref="Beginning"/>, which is then <see langword="null"/>.
    /// </summary>
    internal bool BeginsAs(ReadOnlySequence<byte> bytes)
    {
        byte[] first = bytes.Slice(0, Math.Min(bytes.Length, LogContent.MaxKnown)).ToArray();
        byte[] known = Beginning ?? first;
        int length = Math.Min(first.Length, known.Length);
        if (length == 0 || !first.AsSpan(0, length).SequenceEqual(known.AsSpan(0, length)) || !ReadBeginning().AsSpan().StartsWith(first))
        {
            return false;
        }

        Beginning = null;
        return true;
    }

    /// <summary>
    /// Whether the file holds these bytes before the offset. Then all that was read of it before this question is of one piece.
    /// </summary>
    internal bool Holds(long offset, ReadOnlySpan<byte> last)
    {
        Span<byte> now = stackalloc byte[LogContent.MaxKnown];
        return now[..LogContent.Read(Handle, Name.Path, offset - last.Length, now[..last.Length])].SequenceEqual(last);
    }

    /// <summary>The tail has read up to an offset, before which the file held these bytes.</summary>
    internal void SetRead(long offset, ReadOnlySpan<byte> last)
    {
        lock (_reading)
        {
            _read = Name.IsCompressed ? default : (offset, last.Length, LogContent.HashOfBeginning(last));
        }
    }

    /// <summary>The end of the hole at an offset (lseek(2)); the offset if there is none, or the system does not tell.</summary>
    internal long EndOfHole(long offset)
        => Name.IsCompressed || !OperatingSystem.IsLinux() ? offset : Math.Max(offset, LSeek(Handle, offset, SeekData));

    /// <summary>What a checkpoint knows at an offset, or at the end if that comes first, and which of both it is.</summary>
    /// <returns>
    /// The hash is 0 if the file is shorter, unless <paramref name="offset"/> is <see cref="long.MaxValue"/>, or is damaged.
    /// </returns>
    internal (long Offset, ulong Hash) HashAt(long offset, CancellationToken cancellationToken)
    {
        Span<byte> last = stackalloc byte[LogContent.MaxKnown];
        long reached = Math.Min(offset, Length);
        int length;
        uint beginning;
        if (!Name.IsCompressed)
        {
            length = ReadBefore(reached, last, out beginning);
        }
        else
        {
            try
            {
                using Stream content = LogContent.Decompress(Handle);
                (reached, length) = LogContent.Skip(content, offset, last, out beginning, cancellationToken);
            }
            catch (Exception e) when (e is InvalidDataException or IOException or UnauthorizedAccessException or ObjectDisposedException)
            {
                return default;
            }
        }

        return (reached, offset is not long.MaxValue && reached < offset ? 0 : LogContent.Hash(last[..length], beginning));
    }

    /// <summary>Reads the last bytes before an offset, and the hash of the first ones.</summary>
    internal int ReadBefore(long offset, Span<byte> last, out uint beginning)
    {
        int wanted = (int)Math.Min(offset, LogContent.MaxKnown);
        beginning = LogContent.HashOfBeginning(last[..LogContent.Read(Handle, Name.Path, 0, last[..wanted])]);
        return LogContent.Read(Handle, Name.Path, offset - wanted, last[..wanted]);
    }

    public void Dispose() => file.Dispose();

    [LibraryImport("libc", EntryPoint = "lseek")]
    private static partial long LSeek(SafeFileHandle file, long offset, int origin);

    private bool TryAsk(out FileStatus status)
    {
        try
        {
            return FileStatus.TryGet(Handle, out status);
        }
        catch (ObjectDisposedException)
        {
            status = default;
            return false;
        }
    }
}
