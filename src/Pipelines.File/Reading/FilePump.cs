using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace Pipelines.File.Reading;

/// <summary>
/// Copies an open file, from an offset on, straight into the memory of a <see cref="PipeWriter"/>, on threads of the application's. Used by
/// one caller at a time, who waits for every step;
/// <see cref="Cancel"/> may come from any thread. It closes nothing.
/// </summary>
internal sealed class FilePump : IDisposable
{
    /// <summary>Bytes that a step asks the destination for at most.</summary>
    private const int MaxStep = 64 * 1024;

    /// <summary>Bytes that a step asks for which most likely finds the end of the file.</summary>
    private const int LastStep = 4 * 1024;

    private OpenedFile _source;
    private long _offset;
    private long _length;

    // The caller's, but for the time when the file has it.
    private FileRequest? _request;
    private long _copied;

    // The last step was full where the end was: there is more than was known when the file was opened.
    private bool _hasGrown;

    // Guarded by this object: whether the file has the request, and what Cancel was called with first.
    private bool _isRunning;
    private Exception? _canceled;

    /// <param name="source">The file.</param>
    /// <param name="offset">The first byte, bytes.</param>
    /// <param name="length">At most so many bytes; <see langword="null"/>: to the end of the file.</param>
    internal FilePump(OpenedFile source, long offset, long? length = null) => Reuse(source, offset, length);

    /// <summary>Bytes that the destination was advanced over. May be asked from any thread.</summary>
    internal long Copied => Volatile.Read(ref _copied);

    /// <summary>What reading the file has failed with.</summary>
    internal Exception? Error { get; private set; }

    /// <summary>What <see cref="Cancel"/> was called with first.</summary>
    internal Exception? Canceled => Volatile.Read(ref _canceled);

    /// <summary>Whether a flush lets a copy go on: <see langword="false"/>, the destination takes no more.</summary>
    /// <exception cref="OperationCanceledException">The flush was canceled.</exception>
    internal static bool GoesOn(FlushResult flush)
        => flush.IsCanceled ? throw new OperationCanceledException("The flush was canceled.") : !flush.IsCompleted;

    /// <summary>A flush within a copy. The guarantee of a file's writer is for its end: one sync, and not one for each step.</summary>
    internal static ValueTask<FlushResult> FlushStepAsync(PipeWriter destination, CancellationToken cancellationToken)
        => destination is FilePipeWriter file ? file.FlushAsExactlyAsync(FlushGuarantee.WriteBehind, cancellationToken)
            : destination.FlushAsync(cancellationToken);

    /// <summary>Copies the first of <paramref name="bytes"/> into the destination's memory and advances it. How many is returned.</summary>
    internal static int Write(PipeWriter destination, ReadOnlySpan<byte> bytes)
    {
        Span<byte> room = destination.GetSpan(Math.Min(bytes.Length, MaxStep));
        ThrowIfNone(room.Length);
        bytes = bytes[..Math.Min(bytes.Length, room.Length)];
        bytes.CopyTo(room);
        destination.Advance(bytes.Length);
        return bytes.Length;
    }

    /// <summary>
    /// Makes the step that is under way, or else the next one, throw <paramref name="reason"/>, as soon as the system has given the
    /// destination's memory back. What it returns is to be requested, without a lock.
    /// </summary>
    internal Cancellation Cancel(Exception reason)
    {
        lock (this)
        {
            _canceled ??= reason;
            return _isRunning ? new Cancellation(_request!) : default;
        }
    }

    /// <summary>Copies everything, with a flush after every step. <see langword="false"/>: the destination takes no more.</summary>
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

    /// <summary>Copies something else from here on. It has been disposed of, and nobody cancels it any more.</summary>
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

    /// <summary>Gives the request back. No step is under way.</summary>
    public void Dispose()
    {
        _request?.Return();
        _request = null;
    }

    /// <summary>
    /// Reads once, at most <paramref name="count"/> bytes, and advances the destination over them. 0: the end of the file.
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

        // A file's writer gives all the room that it has left, so that short reads do not take a segment each.
        Memory<byte> memory = destination.GetMemory(destination is FilePipeWriter ? Math.Min(count, LastStep) : count);
        ThrowIfNone(memory.Length);
        _request.Begin(FileRequestKind.Read, _offset + _copied);
        _request.Add(memory[..(int)Math.Min(Math.Min(memory.Length, count), _length - _copied)], address: 0);
        try
        {
            _request.Pin();
        }
        catch
        {
            _request.Clear();
            GiveMemoryBack(destination);
            throw;
        }

        if (!_source.TryPerform(_request) || _request.IsCanceled)
        {
            return ReadLaterAsync(destination, _request);
        }

        FilePipeMetrics.ReadsInline.Add();
        return new ValueTask<int>(EndRead(destination, _request));
    }

    /// <summary>Has the read performed on another thread, and waits until the system is done with its memory, canceled or not.</summary>
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
        while (request.IsCanceled && Canceled is null); // Nobody has asked for that: once more.

        return EndRead(destination, request);
    }

    private int EndRead(PipeWriter destination, FileRequest request)
    {
        int read = (int)request.Transferred;
        request.Clear();
        if (request.Error is not null || request.IsCanceled)
        {
            GiveMemoryBack(destination);
            Error = request.Error;
            ExceptionDispatchInfo.Throw(request.Error ?? _canceled!);
        }

        _hasGrown = read >= LastStep && _offset + _copied >= _source.Properties.Length;

        // Also for 0: the destination's memory is not ours any more.
        destination.Advance(read);
        Volatile.Write(ref _copied, _copied + read);
        return read;
    }

    /// <summary>A read of no bytes would look like the end of the file.</summary>
    private static void ThrowIfNone(int length)
    {
        if (length == 0)
        {
            throw new InvalidOperationException("The destination returned empty memory.");
        }
    }

    /// <summary>A file's writer that is completed from any thread from here on gives the memory back to the pool that it is from.</summary>
    private static void GiveMemoryBack(PipeWriter destination) => (destination as FilePipeWriter)?.Advance(0);

    private void OnTokenCanceled(CancellationToken token) => Cancel(new OperationCanceledException(token)).Request(_source);

    /// <summary>Bytes to ask for: never none.</summary>
    private int NextStep()
    {
        long known = _source.Properties.Length - (_offset + _copied);
        return known > 0 ? (int)Math.Min(known, MaxStep) : _source.Properties.Length > 0 && !_hasGrown ? LastStep : MaxStep;
    }
}
