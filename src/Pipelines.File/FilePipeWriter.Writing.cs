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
    /// as a whole. <see cref="Position"/> tells how many bytes these are.
    /// </remarks>
    /// <inheritdoc cref="FlushAsync(CancellationToken)"/>
    /// <param name="source">The bytes. Do not change them until the call has completed.</param>
    /// <param name="cancellationToken">Ends the wait; the remarks say which bytes are written then.</param>
    public override ValueTask<FlushResult> WriteAsync(ReadOnlyMemory<byte> source, CancellationToken cancellationToken = default)
    {
        _calls.Enter();
        if (source.Length > MaxUnpacedWrite)
        {
            return WriteLongAsync(source, cancellationToken);
        }

        try
        {
            return CopyAsync(source.Span, _options.OfFlush, cancellationToken);
        }
        finally
        {
            _calls.Leave();
        }
    }

    /// <inheritdoc cref="CallsUnderWay.BeginCopy"/>
    internal void BeginCopy() => _calls.BeginCopy();

    internal void EndCopy() => _calls.EndCopy();

    /// <summary>
    /// Reads the stream to its end, straight into the writer's memory, and flushes after each read. A <see cref="FlushGuarantee.Durable"/>
    /// writer is synced once, at the end. The call counts as running until the last byte is read: the stream has memory of the writer.
    /// </summary>
    protected override async Task CopyFromAsync(Stream source, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(source);
        ValueTask<FlushResult> last;
        _calls.Enter();
        try
        {
            while (true)
            {
                Memory<byte> room = GetRoom(MinStreamRead);
                int read = 0;
                try
                {
                    read = await source.ReadAsync(room, cancellationToken).ConfigureAwait(false);
                }
                finally
                {
                    // Also for 0 bytes: it ends the use of the memory.
                    _ = AdvanceRoom(read);
                }

                if (read == 0)
                {
                    last = FlushCoreAsync(_options.OfFlush, cancellationToken);
                    break;
                }

                _ = PipeCopy.TakesMore(await FlushCoreAsync(FlushGuarantee.WriteBehind, cancellationToken).ConfigureAwait(false));
            }
        }
        finally
        {
            _calls.Leave();
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
                FlushResult result = await CopyAsync(source.Span[..MaxUnpacedWrite], FlushGuarantee.WriteBehind, cancellationToken)
                    .ConfigureAwait(false);
                if (result.IsCanceled)
                {
                    return result;
                }
            }

            last = CopyAsync(source.Span, _options.OfFlush, cancellationToken);
        }
        finally
        {
            _calls.Leave();
        }

        return await last.ConfigureAwait(false);
    }

    private ValueTask<FlushResult> CopyAsync(ReadOnlySpan<byte> source, FlushGuarantee guarantee, CancellationToken cancellationToken)
    {
        for (ReadOnlySpan<byte> left = source; left.Length > 0;)
        {
            Span<byte> room = GetRoom(0).Span;
            int length = Math.Min(room.Length, left.Length);
            left[..length].CopyTo(room);
            if (!AdvanceRoom(length))
            {
                // The writer was completed and these bytes are lost. The flush that ends the write would not report it.
                ThrowIfCompleted();
            }

            left = left[length..];
        }

        return FlushCoreAsync(guarantee, cancellationToken, isWritten: !source.IsEmpty);
    }
}
