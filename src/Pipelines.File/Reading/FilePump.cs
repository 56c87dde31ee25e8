using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace Pipelines.File.Reading;

/// <summary>
/// Reads an open file straight into the memory of a <see cref="PipeWriter"/>, whose members are called on threads of the application. One
/// caller uses the object at a time, and awaits every read; any thread may call <see cref="Cancel"/>.
/// </summary>
internal sealed class FilePump(OpenedFile source)
{
    /// <summary>The maximum number of bytes of one step of a copy.</summary>
    internal const int MaxStep = 64 * 1024;

    /// <summary>The number of bytes that a step asks for if it will probably find the end of the file.</summary>
    internal const int LastStep = 4 * 1024;

    // Guarded by this object: the request while the file has it, and the reason of the first Cancel.
    private FileRequest? _running;
    private Exception? _canceled;

    private OpenedFile Source { get; } = source;

    /// <summary>The error of reading the file, or <see langword="null"/>.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>The reason of the first <see cref="Cancel"/>, or <see langword="null"/>.</summary>
    internal Exception? Canceled => Volatile.Read(ref _canceled);

    /// <summary>Whether a copy continues after this flush; <see langword="false"/> if the destination takes no more.</summary>
    /// <exception cref="OperationCanceledException">The flush was canceled.</exception>
    internal static bool GoesOn(FlushResult flush)
        => flush.IsCanceled ? throw new OperationCanceledException("The flush was canceled.") : !flush.IsCompleted;

    /// <summary>
    /// Copies as many of the first bytes of a read as fit into the destination's memory. The destination is advanced over them, and the
    /// reader, even if the destination throws then, so that a second copy repeats nothing. Returns their number.
    /// </summary>
    /// <exception cref="OperationCanceledException">The read was canceled.</exception>
    internal static int Copy(PipeReader reader, in ReadResult read, PipeWriter destination)
    {
        int copied = 0;
        try
        {
            if (read.IsCanceled)
            {
                throw new OperationCanceledException("The read was canceled.");
            }

            ReadOnlySequence<byte> bytes = read.Buffer;
            if (!bytes.IsEmpty)
            {
                Span<byte> room = destination.GetSpan((int)Math.Min(bytes.Length, MaxStep));
                ThrowIfEmpty(room.Length);
                int length = (int)Math.Min(bytes.Length, room.Length);
                bytes.Slice(0, length).CopyTo(room);
                destination.Advance(length);
                copied = length;
            }

            return copied;
        }
        finally
        {
            reader.AdvanceTo(read.Buffer.GetPosition(copied));
        }
    }

    /// <summary>
    /// Makes the running read, or else the next one, throw <paramref name="reason"/>, as soon as the system does not use the destination's
    /// memory any more. The caller requests the returned cancellation, without a lock.
    /// </summary>
    internal Cancellation Cancel(Exception reason)
    {
        lock (this)
        {
            _canceled ??= reason;
            return _running is null ? default : new Cancellation(_running);
        }
    }

    /// <summary>Makes a cancellation of the token cancel the pump, until the registration is disposed of.</summary>
    internal CancellationTokenRegistration EndWith(CancellationToken cancellationToken)
        => cancellationToken.UnsafeRegister(static (state, token) =>
        {
            FilePump pump = (FilePump)state!;
            pump.Cancel(new OperationCanceledException(token)).Request(pump.Source);
        }, this);

    /// <inheritdoc cref="ReadAsync(OpenedFile, PipeWriter, long, int, FilePump?)"/>
    internal ValueTask<int> ReadAsync(PipeWriter destination, long offset, int count)
        => ReadAsync(Source, destination, offset, count, this);

    /// <summary>
    /// Reads once, at most <paramref name="count"/> bytes, and advances the destination over them. Returns their number; 0 at the end of
    /// the file. Completes when the system does not use the memory any more, canceled or not.
    /// </summary>
    /// <param name="source">The file.</param>
    /// <param name="destination">The destination.</param>
    /// <param name="offset">The file offset of the first byte, bytes.</param>
    /// <param name="count">The maximum number of bytes, at least 1.</param>
    /// <param name="pump">What cancels the read; <see langword="null"/>: nothing does.</param>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    internal static async ValueTask<int> ReadAsync(OpenedFile source, PipeWriter destination, long offset, int count, FilePump? pump = null)
    {
        if (pump?.Canceled is { } canceled)
        {
            ExceptionDispatchInfo.Throw(canceled);
        }

        FileRequest request = source.Rent();
        try
        {
            // FilePipeWriter returns all the room of its segment, however small the hint: short reads then share a segment.
            Memory<byte> memory = destination.GetMemory(destination is FilePipeWriter ? Math.Min(count, LastStep) : count);
            ThrowIfEmpty(memory.Length);
            request.ResumesOnPool = true;
            request.Begin(FileRequestKind.Read, offset);
            request.Add(memory[..Math.Min(memory.Length, count)], address: 0);
            request.Pin();
            if (source.Try(request) == Attempt.Done && !request.IsCanceled)
            {
                FilePipeMetrics.ReadsInline.Add();
            }
            else
            {
                do
                {
                    Cancellation cancellation = pump?.SetRunning(request) ?? default;
                    ValueTask run = source.RunAsync(request);
                    cancellation.Request(source);
                    await run.WithoutBox();
                    _ = pump?.SetRunning(null);
                }
                while (request.IsCanceled && pump?.Canceled is null); // Nobody has canceled it: repeat it.
            }

            pump?.Error = request.Error;
            if ((request.IsCanceled ? pump!.Canceled : request.Error) is { } failure)
            {
                ExceptionDispatchInfo.Throw(failure);
            }

            int read = (int)request.Transferred;
            request.Clear();

            // Also for 0 bytes: it ends the use of the destination's memory.
            destination.Advance(read);
            return read;
        }
        catch when (destination is FilePipeWriter)
        {
            // Ends the use of its memory, so that the writer returns it to its pool when it is completed.
            request.Clear();
            destination.Advance(0);
            throw;
        }
        finally
        {
            source.Return(request);
        }
    }

    private Cancellation SetRunning(FileRequest? request)
    {
        lock (this)
        {
            _running = request;
            return request is null || _canceled is null ? default : new Cancellation(request);
        }
    }

    /// <summary>Refuses empty memory: a read of 0 bytes would look like the end of the file.</summary>
    private static void ThrowIfEmpty(int length)
    {
        if (length == 0)
        {
            throw new InvalidOperationException("The destination returned empty memory.");
        }
    }
}
