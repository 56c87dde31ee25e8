using Pipelines.File.Reading;
using Pipelines.File.Threading;
using Pipelines.File.Writing;

namespace Pipelines.File;

/// <content>Writes memory, and copies streams.</content>
public sealed partial class FilePipeWriter
{
    /// <summary>The maximum number of bytes that WriteAsync copies before it flushes, which checks the thresholds.</summary>
    private const int MaxUnpacedWrite = 1024 * 1024;

    /// <summary>The minimum memory that a copy reads the stream into, bytes.</summary>
    private const int MinStreamRead = 4 * 1024;

    /// <summary>Copies <paramref name="source"/>, and flushes: more than 1 MiB in pieces, with a flush after each.</summary>
    /// <remarks>
    /// A call that is canceled keeps what was copied, a prefix of <paramref name="source"/>, which is written exactly once: 1 MiB or less
    /// as a whole. <see cref="Position"/> says how many bytes these are.
    /// </remarks>
    /// <inheritdoc cref="FlushAsync(CancellationToken)"/>
    /// <param name="source">The bytes. Do not change them until the call has completed.</param>
    /// <param name="cancellationToken">Ends the wait; the remarks say which bytes are written then.</param>
    public override ValueTask<FlushResult> WriteAsync(ReadOnlyMemory<byte> source, CancellationToken cancellationToken = default)
    {
        EnterCall();
        if (source.Length > MaxUnpacedWrite)
        {
            return WriteLongAsync(source, cancellationToken);
        }

        try
        {
            return CopyAsync(source, _options.OfFlush, cancellationToken);
        }
        finally
        {
            LeaveCall();
        }
    }

    /// <summary>
    /// Reads the stream to its end, straight into the writer's memory, and flushes after each read. A <see cref="FlushGuarantee.Durable"/>
    /// writer is synced once, at the end. The call counts as running until the last byte is read: the stream has memory of the writer.
    /// </summary>
    protected override Task CopyFromAsync(Stream source, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(source);
        return CopyAsOneCallAsync(within => within.CopyAsync(source, cancellationToken), cancellationToken);
    }

    /// <summary>Copies the rest of the reader, as a stream is copied.</summary>
    Task ICopyDestination.CopyFromAsync(PipeReader source, CancellationToken cancellationToken)
        => CopyAsOneCallAsync(within => PipeCopy.CopyAsync(source, within, cancellationToken), cancellationToken);

    private async Task CopyAsOneCallAsync(Func<WithinTheCall, Task> copy, CancellationToken cancellationToken)
    {
        ValueTask<FlushResult> last;
        EnterCall();
        try
        {
            await copy(new WithinTheCall(this)).ConfigureAwait(false);
            last = FlushCoreAsync(_options.OfFlush, cancellationToken);
        }
        finally
        {
            // It ends the use of the memory.
            AdvanceRoom(0);
            LeaveCall();
        }

        _ = PipeCopy.TakesMore(await last.ConfigureAwait(false));
    }

    /// <summary>
    /// Copies a long source in pieces, with a flush after each, so that the thresholds hold. The call counts as running until the last
    /// byte is copied.
    /// </summary>
    /// <remarks>
    /// It allocates its task: a pooled one goes to another write if its result is asked for too early, and then the process ends.
    /// </remarks>
    private async ValueTask<FlushResult> WriteLongAsync(ReadOnlyMemory<byte> source, CancellationToken cancellationToken)
    {
        ValueTask<FlushResult> last;
        try
        {
            for (; source.Length > MaxUnpacedWrite; source = source[MaxUnpacedWrite..])
            {
                FlushResult result = await CopyAsync(source[..MaxUnpacedWrite], FlushGuarantee.WriteBehind, cancellationToken)
                    .ConfigureAwait(false);
                if (result.IsCanceled)
                {
                    return result;
                }
            }

            last = CopyAsync(source, _options.OfFlush, cancellationToken);
        }
        finally
        {
            LeaveCall();
        }

        return await last.ConfigureAwait(false);
    }

    /// <summary>Copies and flushes, or writes the bytes from where they are.</summary>
    private ValueTask<FlushResult> CopyAsync(ReadOnlyMemory<byte> source, FlushGuarantee guarantee, CancellationToken cancellationToken)
    {
        int written = 0;
        if (guarantee == FlushGuarantee.Written && !_cancelRequested && !cancellationToken.IsCancellationRequested
            && _loop.TryWriteHere(source, out written) && (written == source.Length || !_loop.GoesOn))
        {
            return EndedHere(written == source.Length);
        }

        for (ReadOnlySpan<byte> left = source.Span[written..]; left.Length > 0;)
        {
            Span<byte> room = GetRoom(0).Span;
            int length = Math.Min(room.Length, left.Length);
            left[..length].CopyTo(room);
            AdvanceRoom(length);
            left = left[length..];
        }

        return FlushCoreAsync(guarantee, cancellationToken);
    }

    /// <summary>The writer within a call of its own, and with .NET's copy of a stream.</summary>
    private sealed class WithinTheCall(FilePipeWriter writer) : PipeWriter
    {
        internal Task CopyAsync(Stream source, CancellationToken cancellationToken) => CopyFromAsync(source, cancellationToken);

        public override Memory<byte> GetMemory(int sizeHint = 0) => writer.GetRoom(sizeHint == 0 ? MinStreamRead : sizeHint);

        public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

        public override void Advance(int bytes) => writer.AdvanceRoom(bytes);

        public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
            => writer.FlushCoreAsync(FlushGuarantee.WriteBehind, cancellationToken);

        public override void CancelPendingFlush() => throw new NotSupportedException();

        public override void Complete(Exception? exception = null) => throw new NotSupportedException();
    }
}
