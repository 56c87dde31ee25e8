using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>
/// A file with direct I/O (<see cref="FileCaching.Direct"/>), around the system's file. It accepts requests of any offset and length, and
/// makes whole blocks of them; <see cref="ReadGranularity"/> and <see cref="ReadAlignment"/> say where requests should begin and end. The
/// parts that are no whole block are read into memory of its own, or written through the page cache. So the file never holds a byte that
/// nobody wrote.
/// </summary>
/// <remarks>
/// A request is divided into calls of <see cref="BytesPerCall"/>. Several of them run at once, each on a waiting thread
/// (<see cref="DirectTransfer"/>). The request is over when all of them are, because they use its memory. Calls that wait for the device
/// end by themselves, so none is canceled.
/// </remarks>
internal sealed unsafe class DirectFile : OpenedFile
{
    /// <summary>The maximum number of bytes of one call.</summary>
    internal const int BytesPerCall = 512 * 1024;

    /// <summary>The default number of reads that run at once. Chosen by measurement: docs/tuning.md.</summary>
    internal const int DefaultReadsInFlight = 4;

    /// <summary>The default maximum number of writes that run at once. Chosen by measurement: docs/tuning.md.</summary>
    internal const int DefaultWritesInFlight = 1;

    /// <summary>The maximum of both: the number of segments of 64 KiB that a request has.</summary>
    internal const int MaxInFlight = 16;

    /// <summary>
    /// The minimum block, bytes, and the alignment of a caller's memory. It is a multiple of the block of every common device. A block is
    /// also at least a page, so that direct calls and cached calls never share a page.
    /// </summary>
    internal const int LeastBlock = 4096;

    private readonly OpenedFile _file;
    private readonly DirectCalls _calls;
    private readonly int _inFlight;

    // A writer: the file's length at opening, bytes. Behind it, writes that end out of order could leave a gap.
    private readonly long _lengthAtOpening;

    // Performs the one request that runs at a time, a reader's or a writer's.
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

    /// <summary>Offset and length of a direct call are multiples of this, bytes: a power of two.</summary>
    internal int Block { get; }

    internal bool IsWriter { get; }

    internal override FilePipeBackend Kind => _file.Kind;

    internal override FileIdentity Identity => _file.Identity;

    internal override bool IsDirect => true;

    internal override int ReadGranularity => Block;

    internal override int ReadAlignment => Block;

    // Half of the calls run, and the others are queued behind them, so that the device never waits for a call.
    internal override int BytesPerRead => 2 * _inFlight * BytesPerCall;

    internal override int BytesPerWrite => _inFlight * BytesPerCall;

    internal override int MaxBuffersPerOperation => FileRequest.MaxPooledBuffers;

    internal override int LargestWriteSegment => _file.LargestWriteSegment;

    /// <summary>Wraps a file so that it is read or written with direct I/O.</summary>
    /// <param name="file">The system's file. It stays open if this throws.</param>
    /// <param name="isWriter">Whether the file is written, and not read.</param>
    /// <param name="isOwn">Whether the file was opened for this reader or writer, and nobody else uses the handle.</param>
    /// <param name="inFlight">The maximum number of calls that run at once; 0: the default.</param>
    /// <param name="mostLength">The length, bytes, to which a longer file is cut before the first write.</param>
    /// <exception cref="ArgumentException">The file is standard input or output, or is open for appending.</exception>
    /// <exception cref="NotSupportedException">
    /// The file cannot seek, or its file system has no direct I/O, or this library has none for the system or back end.
    /// </exception>
    /// <exception cref="IOException">The handle is the caller's, and the file could not be opened a second time.</exception>
    /// <exception cref="UnauthorizedAccessException">The same, and the system denies access.</exception>
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

    /// <summary>Wraps a handle of the caller that is open for direct I/O; returns any other file as it is.</summary>
    internal static OpenedFile OfDirectHandle(OpenedFile file, bool isWriter)
        => file.IsDirect && CanBeFor(file, isWriter) ? Of(file, isWriter, isOwn: false, inFlight: 0) : file;

    /// <summary>
    /// Pins memory of a caller's pool, and checks its alignment. Runs the caller's code. If this throws, the segment was returned to its
    /// pool.
    /// </summary>
    /// <exception cref="ArgumentException">The memory is not aligned to <see cref="LeastBlock"/>.</exception>
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

    /// <summary>The exception if this library has no direct I/O for the system or the back end.</summary>
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

    /// <summary>The last block boundary at or before the offset.</summary>
    internal long BoundaryBefore(long offset) => offset & -Block;

    /// <summary>
    /// Performs a part of a request on the current thread: at most <see cref="BytesPerCall"/> bytes from a block boundary on.
    /// <paramref name="done"/> begins as <paramref name="start"/>, and is the file offset that was reached, also if this throws.
    /// </summary>
    internal void Perform(ReadOnlySpan<Libc.IoVector> memory, long start, long end, ref long done)
    {
        if (!IsWriter)
        {
            done += Read(memory, start, end);
            return;
        }

        // The bytes before the first boundary and after the last one share their blocks with other bytes, so they go through the page
        // cache.
        long first = Math.Min(BoundaryBehind(start), end);
        long last = Math.Max(first, BoundaryBefore(end));
        _ = Write(memory, start, first, ref done, isDirect: false)
            && Write(memory, start, last, ref done, isDirect: true)
            && Write(memory, start, end, ref done, isDirect: false);
    }

    /// <summary>
    /// Whether this writer or reader alone decides where its calls begin; <see langword="false"/> if the system or another process does.
    /// </summary>
    private static bool CanBeFor(OpenedFile file, bool isWriter) => !file.SharesPosition && !(isWriter && file.Appends);

    private long BoundaryBehind(long offset) => BoundaryBefore(offset + Block - 1);

    /// <summary>
    /// Whether the calls of the request may run at once. Writes that extend the file are made one after the other, so that the file is an
    /// unbroken prefix when the process is killed. File systems serialize these in any case.
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
            // A short call has found the end of the file only if it stopped within a block of the device. Otherwise the next call shows why
            // it was short. The error of that call counts only if no wanted byte was read; else the next request meets it again.
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

    /// <summary>
    /// Writes from <paramref name="done"/> to <paramref name="end"/>. Returns <see langword="false"/> if the system has taken only a part.
    /// </summary>
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

    /// <summary>
    /// Copies the vectors of the file offsets <paramref name="from"/> to <paramref name="to"/> into <paramref name="part"/>, and returns
    /// their number. The memory as a whole begins at the file offset <paramref name="start"/>.
    /// </summary>
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

    /// <summary>Whether addresses and lengths are aligned, so that the kernel takes the memory as it is.</summary>
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
