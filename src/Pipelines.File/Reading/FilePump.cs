using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace Pipelines.File.Reading;

/// <summary>
/// Copies an open file from an offset on, straight into the memory of a <see cref="PipeWriter"/>, whose members it calls on threads of the
/// application. One caller uses it at a time, and awaits every step; any thread may call <see cref="Cancel"/>. It closes neither the file
/// nor the destination.
/// </summary>
internal sealed class FilePump : IDisposable
{
    /// <summary>The maximum number of bytes of one step.</summary>
    private const int MaxStep = 64 * 1024;

    /// <summary>The number of bytes that a step asks for if it will probably find the end of the file.</summary>
    private const int LastStep = 4 * 1024;

    private OpenedFile _source;
    private long _offset;
    private long _length;

    // Owned by the caller, and by the file while it performs a read.
    private FileRequest? _request;
    private long _copied;

    // The last step was full although it began at the length at opening or after it: the file has grown.
    private bool _hasGrown;

    // Guarded by this object: whether the file has the request, and the reason of the first Cancel.
    private bool _isRunning;
    private Exception? _canceled;

    /// <param name="source">The file.</param>
    /// <param name="offset">The file offset of the first byte, bytes.</param>
    /// <param name="length">The maximum number of bytes; <see langword="null"/>: to the end of the file.</param>
    internal FilePump(OpenedFile source, long offset, long? length = null) => Reuse(source, offset, length);

    /// <summary>The number of bytes that the destination was advanced over. Any thread may read it.</summary>
    internal long Copied => Volatile.Read(ref _copied);

    /// <summary>The error of reading the file, or <see langword="null"/>.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>The reason of the first <see cref="Cancel"/>, or <see langword="null"/>.</summary>
    internal Exception? Canceled => Volatile.Read(ref _canceled);

    /// <summary>Whether a copy continues after this flush; <see langword="false"/> if the destination takes no more.</summary>
    /// <exception cref="OperationCanceledException">The flush was canceled.</exception>
    internal static bool GoesOn(FlushResult flush)
        => flush.IsCanceled ? throw new OperationCanceledException("The flush was canceled.") : !flush.IsCompleted;

    /// <summary>
    /// Flushes a step of a copy. A <see cref="FilePipeWriter"/> is flushed without its guarantee, which holds at the end of the copy: one
    /// sync instead of one for each step.
    /// </summary>
    internal static ValueTask<FlushResult> FlushStepAsync(PipeWriter destination, CancellationToken cancellationToken)
        => destination is FilePipeWriter file ? file.FlushAsExactlyAsync(FlushGuarantee.WriteBehind, cancellationToken)
            : destination.FlushAsync(cancellationToken);

    /// <summary>
    /// Copies as many of the first <paramref name="bytes"/> as fit into the destination's memory, advances over them, and returns their
    /// number.
    /// </summary>
    internal static int Write(PipeWriter destination, ReadOnlySpan<byte> bytes)
    {
        Span<byte> room = destination.GetSpan(Math.Min(bytes.Length, MaxStep));
        ThrowIfEmpty(room.Length);
        bytes = bytes[..Math.Min(bytes.Length, room.Length)];
        bytes.CopyTo(room);
        destination.Advance(bytes.Length);
        return bytes.Length;
    }

    /// <summary>
    /// Makes the running step, or else the next one, throw <paramref name="reason"/>, as soon as the system does not use the destination's
    /// memory any more. The caller requests the returned cancellation, without a lock.
    /// </summary>
    internal Cancellation Cancel(Exception reason)
    {
        lock (this)
        {
            _canceled ??= reason;
            return _isRunning ? new Cancellation(_request!) : default;
        }
    }

    /// <summary>
    /// Copies to the end, with a flush after every step. Returns <see langword="false"/> if the destination takes no more.
    /// </summary>
    internal async ValueTask<bool> CopyToAsync(PipeWriter destination, CancellationToken cancellationToken)
    {
        CancellationTokenRegistration registration = cancellationToken.UnsafeRegister(
            static (state, token) => ((FilePump)state!).OnTokenCanceled(token), this);
        try
        {
            while (Copied < _length)
            {
                if (await ReadAsync(destination, NextStep()).ConfigureAwait(false) == 0)
                {
                    return true;
                }

                if (!GoesOn(await FlushStepAsync(destination, cancellationToken).ConfigureAwait(false)))
                {
                    return false;
                }
            }

            return true;
        }
        finally
        {
            registration.Unregister();
        }
    }

    /// <summary>
    /// Prepares the pump for another copy. Called after <see cref="Dispose"/>, when nobody can call <see cref="Cancel"/> any more.
    /// </summary>
    [MemberNotNull(nameof(_source))]
    internal void Reuse(OpenedFile source, long offset, long? length = null)
    {
        _source = source;
        _offset = offset;
        _length = length ?? long.MaxValue - offset;
        _copied = 0;
        _hasGrown = false;
        _canceled = null;
        Error = null;
    }

    /// <summary>Returns the request to its pool. Called when no step is running.</summary>
    public void Dispose()
    {
        if (_request is not null)
        {
            _source.Return(_request);
            _request = null;
        }
    }

    /// <summary>
    /// Reads once, at most <paramref name="count"/> bytes, and advances the destination over them. Returns their number; 0 at the end of
    /// the file.
    /// </summary>
    internal ValueTask<int> ReadAsync(PipeWriter destination, int count)
    {
        if (Canceled is { } canceled)
        {
            return ValueTask.FromException<int>(canceled);
        }

        if (_request is null)
        {
            _request = _source.Rent();
            _request.ResumesOnPool = true;
        }

        // FilePipeWriter returns all the room of its segment, however small the hint: short reads then share a segment.
        Memory<byte> memory = destination.GetMemory(destination is FilePipeWriter ? Math.Min(count, LastStep) : count);
        ThrowIfEmpty(memory.Length);
        _request.Begin(FileRequestKind.Read, _offset + _copied);
        _request.Add(memory[..(int)Math.Min(Math.Min(memory.Length, count), _length - _copied)], address: 0);
        try
        {
            _request.Pin();
        }
        catch
        {
            _request.Clear();
            EndMemoryUse(destination);
            throw;
        }

        if (_source.Try(_request) != Attempt.Done || _request.IsCanceled)
        {
            return ReadLaterAsync(destination, _request);
        }

        FilePipeMetrics.ReadsInline.Add();
        return new ValueTask<int>(EndRead(destination, _request));
    }

    /// <summary>Has another thread perform the read. Completes when the system does not use the memory any more, canceled or not.</summary>
    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    private async ValueTask<int> ReadLaterAsync(PipeWriter destination, FileRequest request)
    {
        do
        {
            Cancellation cancellation;
            lock (this)
            {
                _isRunning = true;
                cancellation = _canceled is null ? default : new Cancellation(request);
            }

            ValueTask run = _source.RunAsync(request);
            cancellation.Request(_source);
            await run.WithoutBox();
            lock (this)
            {
                _isRunning = false;
            }
        }
        while (request.IsCanceled && Canceled is null); // Nobody has canceled it: repeat it.

        return EndRead(destination, request);
    }

    private int EndRead(PipeWriter destination, FileRequest request)
    {
        int read = (int)request.Transferred;
        request.Clear();
        if (request.Error is not null || request.IsCanceled)
        {
            EndMemoryUse(destination);
            Error = request.Error;
            ExceptionDispatchInfo.Throw(request.Error ?? _canceled!);
        }

        _hasGrown = read >= LastStep && _offset + _copied >= _source.Properties.Length;

        // Also for 0 bytes: it ends the use of the destination's memory.
        destination.Advance(read);
        Volatile.Write(ref _copied, _copied + read);
        return read;
    }

    /// <summary>Refuses empty memory: a read of 0 bytes would look like the end of the file.</summary>
    private static void ThrowIfEmpty(int length)
    {
        if (length == 0)
        {
            throw new InvalidOperationException("The destination returned empty memory.");
        }
    }

    /// <summary>
    /// Ends the use of the destination's memory after a failure, so that a <see cref="FilePipeWriter"/> returns it to its pool when it is
    /// completed.
    /// </summary>
    private static void EndMemoryUse(PipeWriter destination) => (destination as FilePipeWriter)?.Advance(0);

    private void OnTokenCanceled(CancellationToken token) => Cancel(new OperationCanceledException(token)).Request(_source);

    /// <summary>The number of bytes to ask for; at least 1.</summary>
    private int NextStep()
    {
        long known = _source.Properties.Length - (_offset + _copied);
        return known > 0 ? (int)Math.Min(known, MaxStep) : _source.Properties.Length > 0 && !_hasGrown ? LastStep : MaxStep;
    }
}
