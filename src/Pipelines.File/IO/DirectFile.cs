using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// A file past the page cache (<see cref="FileCaching.Direct"/>): the system's file, with whatever is asked of it made whole blocks.
/// Whoever reads or writes it knows nothing of blocks but where it had better begin and end. What is no whole block goes through memory of
/// its own, when it is read, or through the cache, when it is written: no byte is ever in the file that nobody wrote.
/// </summary>
/// <remarks>
/// A request is divided into calls of <see cref="BytesPerCall"/>, several of which are under way at once, each on a waiting thread
/// (<see cref="DirectTransfer"/>). It is over when all of them are, so that its memory is in use for as long as any of them runs. A call
/// that waits for the device ends by itself, so none is ever canceled.
/// </remarks>
internal sealed unsafe class DirectFile : OpenedFile
{
    /// <summary>Bytes of one call at most.</summary>
    internal const int BytesPerCall = 512 * 1024;

    /// <summary>Reads under way at once, unless the options say otherwise. Chosen by measurement: docs/tuning.md.</summary>
    internal const int DefaultReadsInFlight = 4;

    /// <summary>Writes under way at once at most, unless the options say otherwise. Chosen likewise.</summary>
    internal const int DefaultWritesInFlight = 1;

    /// <summary>The most of both: as many segments of 64 KiB as a request has.</summary>
    internal const int MaxInFlight = 16;

    /// <summary>
    /// The least block, bytes, and what a caller's memory has to begin at a multiple of. A multiple of the block of every common device;
    /// and with the page it is no page is ever written both ways at once.
    /// </summary>
    internal const int LeastBlock = 4096;

    private readonly OpenedFile _file;
    private readonly DirectCalls _calls;
    private readonly int _inFlight;

    // A writer: the file's length when it was opened. A gap behind it would be seen, in front of it there are bytes in any case.
    private readonly long _lengthAtOpening;

    // Of the one request that there is at a time: a reader's or a writer's.
    private readonly DirectTransfer _transfer;

    private DirectFile(OpenedFile file, DirectCalls calls, long length, bool isWriter, int inFlight)
        : base(file.Handle, file.GivenPath, file.Properties)
    {
        _file = file;
        _calls = calls;
        IsWriter = isWriter;
        _inFlight = inFlight;
        _transfer = new DirectTransfer(this, inFlight);
        Block = Math.Max(Math.Max(LeastBlock, Environment.SystemPageSize), calls.OffsetBlock);
        _lengthAtOpening = length;
        IsNew = file.IsNew;
    }

    /// <summary>What the offset and length of a call past the cache are multiples of, bytes: a power of two.</summary>
    internal int Block { get; }

    internal bool IsWriter { get; }

    internal override FilePipeBackend Kind => _file.Kind;

    internal override FileIdentity Identity => _file.Identity;

    internal override bool IsDirect => true;

    internal override int ReadGranularity => Block;

    internal override int ReadAlignment => Block;

    // So many calls are under way, and as many wait for their turn, so that the device does not.
    internal override int BytesPerRead => 2 * _inFlight * BytesPerCall;

    internal override int BytesPerWrite => _inFlight * BytesPerCall;

    internal override int MaxBuffersPerOperation => FileRequest.MaxPooledBuffers;

    internal override int LargestWriteSegment => _file.LargestWriteSegment;

    /// <summary>Has a file be read or written past the page cache.</summary>
    /// <param name="file">The system's file. It stays open where this throws.</param>
    /// <param name="isWriter">Whether it is written, and not read.</param>
    /// <param name="isOwn">Whether this process has opened it for this reader or writer, and nobody else has it.</param>
    /// <param name="inFlight">Calls under way at once at most; 0: as many as were measured to be best.</param>
    /// <param name="mostLength">What the file is cut to before the first write, bytes.</param>
    /// <exception cref="ArgumentException">It is standard input or output, or is open for appending.</exception>
    /// <exception cref="NotSupportedException">
    /// It cannot seek, or its file system has no direct I/O, or this library has none for the system or back end.
    /// </exception>
    /// <exception cref="IOException">A handle of the caller's, and the file cannot be opened a second time.</exception>
    /// <exception cref="UnauthorizedAccessException">The same, where the system denies access.</exception>
    internal static DirectFile Of(OpenedFile file, bool isWriter, bool isOwn, int inFlight, long mostLength = long.MaxValue)
    {
        if (!CanBeFor(file, isWriter))
        {
            throw new ArgumentException(
                $"{nameof(FileCaching)}.{nameof(FileCaching.Direct)} goes neither with a standard stream nor with a file that is open for "
                + "appending: others decide where its bytes begin.");
        }

        if (!file.CanSeek)
        {
            throw new NotSupportedException(
                $"The file cannot seek, so there is no {nameof(FileCaching)}.{nameof(FileCaching.Direct)} for it: '{file.Path}'");
        }

        long length = isWriter && file.Properties.IsRegular ? Math.Min(RandomAccess.GetLength(file.Handle), mostLength) : 0;
        return new DirectFile(file, file.BeginDirect(isWriter, isOwn), length, isWriter,
            inFlight > 0 ? inFlight : isWriter ? DefaultWritesInFlight : DefaultReadsInFlight);
    }

    /// <summary>Takes a handle of the caller's that is open for direct I/O; any other file is returned as it is.</summary>
    internal static OpenedFile OfDirectHandle(OpenedFile file, bool isWriter)
        => file.IsDirect && CanBeFor(file, isWriter) ? Of(file, isWriter, isOwn: false, inFlight: 0) : file;

    /// <summary>
    /// Pins memory of a caller's pool, of which every piece has to begin at a boundary. Runs the caller's code; where it throws, the memory
    /// is given back.
    /// </summary>
    /// <exception cref="ArgumentException">It does not.</exception>
    internal static void RequireWhole(FileSegment segment)
    {
        try
        {
            segment.Pin();
            if ((segment.Address & (LeastBlock - 1)) != 0)
            {
                throw new ArgumentException(
                    $"Memory of the Pool begins at no multiple of {LeastBlock} bytes, which direct I/O "
                    + $"({nameof(FileCaching)}.{nameof(FileCaching.Direct)}, O_DIRECT) needs. The library's own pool has such memory.");
            }
        }
        catch
        {
            _ = SegmentPool.Shared.Return(segment);
            throw;
        }
    }

    /// <summary>This library has none for the system or the back end.</summary>
    internal static PlatformNotSupportedException NotHere(FilePipeBackend backend, string? path)
        => new($"There is no {nameof(FileCaching)}.{nameof(FileCaching.Direct)} "
            + $"with {nameof(FilePipeBackend)}.{backend} on this system: '{path}'");

    internal static NotSupportedException NotSupported(string? path)
        => new($"The file system has no direct I/O (O_DIRECT), which {nameof(FileCaching)}.{nameof(FileCaching.Direct)} needs: '{path}'");

    internal override bool TryPerform(FileRequest operation, bool mayWait)
        => operation.Kind is not (FileRequestKind.Read or FileRequestKind.Write) && _file.TryPerform(operation, mayWait);

    internal override ValueTask RunAsync(FileRequest request)
        => request.Kind is FileRequestKind.Read or FileRequestKind.Write ? base.RunAsync(request) : _file.RunAsync(request);

    internal override void Start(FileRequest operation) => _transfer.Run(operation, IsDivided(operation));

    internal override void Cancel(FileRequest operation, int generation)
        => _transfer.Stop(operation, generation);

    internal override void OpenFolder() => _file.OpenFolder();

    internal override void SyncFolder() => _file.SyncFolder();

    internal override Exception? TellCloseError() => _calls.TellCloseError() ?? _file.TellCloseError();

    internal override void Release(bool closeHandle)
    {
        _calls.Dispose();
        _file.Release(closeHandle);
    }

    /// <summary>The last boundary that is not behind the offset.</summary>
    internal long BoundaryBefore(long offset) => offset & -Block;

    /// <summary>
    /// Makes a part of a request, at most <see cref="BytesPerCall"/> from a boundary on, in place. <paramref name="done"/>, which begins as
    /// <paramref name="start"/>, is how far it came, also where this throws.
    /// </summary>
    internal void Perform(ReadOnlySpan<Libc.IoVector> memory, long start, long end, ref long done)
    {
        if (!IsWriter)
        {
            done += Read(memory, start, end);
            return;
        }

        // The bytes in front of the first boundary and behind the last one share their block with others, of which the cache knows.
        long first = Math.Min(BoundaryBehind(start), end);
        long last = Math.Max(first, BoundaryBefore(end));
        _ = Write(memory, start, first, ref done, isDirect: false)
            && Write(memory, start, last, ref done, isDirect: true)
            && Write(memory, start, end, ref done, isDirect: false);
    }

    /// <summary>Whether it is known where the bytes of a call begin: not where the system, or another process, decides it.</summary>
    private static bool CanBeFor(OpenedFile file, bool isWriter) => !file.SharesPosition && !(isWriter && file.Appends);

    private long BoundaryBehind(long offset) => BoundaryBefore(offset + Block - 1);

    /// <summary>
    /// Whether its calls may be under way at once. Writes that make the file longer are made one after the other, so that it is an unbroken
    /// prefix whenever the process is killed; file systems make them so in any case.
    /// </summary>
    private bool IsDivided(FileRequest request)
        => request.Kind == FileRequestKind.Read
            || (request.Offset + request.Length <= _lengthAtOpening && ((request.Offset | request.Length) & (Block - 1)) == 0);

    private long Read(ReadOnlySpan<Libc.IoVector> memory, long start, long end)
    {
        long first = BoundaryBefore(start);
        long last = BoundaryBehind(end);
        if (first == start && last == end && AreWhole(memory))
        {
            fixed (Libc.IoVector* vectors = memory)
            {
                return _calls.Transfer(FileRequestKind.Read, isDirect: true, vectors, memory.Length, start);
            }
        }

        FileSegment scratch = RentScratch(last - first);
        try
        {
            // A call that returns less has found the end only where that lies within a block of the device; else the next call tells why,
            // and the error counts only if it is in front of all that is wanted: behind bytes that were read the next request meets it
            // again.
            long skipped = start - first;
            long read = 0;
            long count;
            do
            {
                Libc.IoVector vector = new() { Base = scratch.Address + (nint)read, Length = (nint)(last - first - read) };
                try
                {
                    count = _calls.Transfer(FileRequestKind.Read, isDirect: true, &vector, 1, first + read);
                }
                catch (IOException) when (read > skipped)
                {
                    break;
                }

                read += count;
            }
            while (count > 0 && first + read < last && (count & (Math.Max(_calls.OffsetBlock, _calls.MemoryBlock) - 1)) == 0);

            long copied = Math.Clamp(read - skipped, 0, end - start);
            Copy(scratch.PinnedSpan.Slice((int)skipped, (int)copied), memory);
            return copied;
        }
        finally
        {
            _ = SegmentPool.Shared.Return(scratch);
        }
    }

    /// <summary>Writes from <paramref name="done"/> on. <see langword="false"/>: the system has not taken all of it.</summary>
    private bool Write(ReadOnlySpan<Libc.IoVector> memory, long start, long end, ref long done, bool isDirect)
    {
        if (done == end)
        {
            return true;
        }

        Libc.IoVector* vectors = stackalloc Libc.IoVector[memory.Length];
        int count = Gather(memory, start, done, end, new Span<Libc.IoVector>(vectors, memory.Length));
        if (!isDirect || AreWhole(new ReadOnlySpan<Libc.IoVector>(vectors, count)))
        {
            done += _calls.Transfer(FileRequestKind.Write, isDirect, vectors, count, done);
            return done == end;
        }

        FileSegment scratch = RentScratch(end - done);
        try
        {
            Span<byte> rest = scratch.PinnedSpan;
            for (int i = 0; i < count; i++)
            {
                new ReadOnlySpan<byte>((void*)vectors[i].Base, (int)vectors[i].Length).CopyTo(rest);
                rest = rest[(int)vectors[i].Length..];
            }

            Libc.IoVector vector = new() { Base = scratch.Address, Length = (nint)(end - done) };
            done += _calls.Transfer(FileRequestKind.Write, isDirect: true, &vector, 1, done);
            return done == end;
        }
        finally
        {
            _ = SegmentPool.Shared.Return(scratch);
        }
    }

    /// <summary>The memory of a part, of memory that begins at <paramref name="start"/>.</summary>
    internal static int Gather(ReadOnlySpan<Libc.IoVector> memory, long start, long from, long to, Span<Libc.IoVector> part)
    {
        int count = 0;
        foreach (ref readonly Libc.IoVector vector in memory)
        {
            long end = start + vector.Length;
            if (from < end && start < to)
            {
                long skipped = Math.Max(0, from - start);
                part[count].Base = vector.Base + (nint)skipped;
                part[count++].Length = (nint)(Math.Min(to, end) - start - skipped);
            }

            start = end;
        }

        return count;
    }

    /// <summary>Whether the kernel takes the memory as it is.</summary>
    private bool AreWhole(ReadOnlySpan<Libc.IoVector> vectors)
    {
        nint odd = 0;
        foreach (ref readonly Libc.IoVector vector in vectors)
        {
            odd |= (vector.Base & (_calls.MemoryBlock - 1)) | (vector.Length & (Block - 1));
        }

        return odd == 0;
    }

    private static void Copy(ReadOnlySpan<byte> bytes, ReadOnlySpan<Libc.IoVector> vectors)
    {
        foreach (ref readonly Libc.IoVector vector in vectors)
        {
            int length = (int)Math.Min(bytes.Length, vector.Length);
            bytes[..length].CopyTo(new Span<byte>((void*)vector.Base, length));
            bytes = bytes[length..];
        }
    }

    private static FileSegment RentScratch(long length) => SegmentPool.Shared.Rent((int)Math.Max(length, FileSegment.LeastWholePages));
}
