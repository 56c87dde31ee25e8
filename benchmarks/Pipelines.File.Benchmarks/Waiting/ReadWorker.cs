using System.IO.Pipelines;
using FilePipelinesBenchmarks.Cold;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Waiting;

/// <summary>Reads pieces at places of its own.</summary>
internal abstract class ReadWorker : WaitingWorker
{
    private readonly IEnumerator<long> _offsets;

    private ReadWorker(RandomReadCase point, int worker)
    {
        Point = point;
        _offsets = point.OffsetsOf(worker).GetEnumerator();
        Handle = File.OpenHandle(point.File.Path, FileMode.Open, FileAccess.Read, FileShare.Read, FileOptions.RandomAccess);
    }

    private protected RandomReadCase Point { get; }

    private protected SafeFileHandle Handle { get; }

    public override ValueTask DisposeAsync()
    {
        _offsets.Dispose();
        Handle.Dispose();
        return default;
    }

    private protected long NextOffset()
        => _offsets.MoveNext() ? _offsets.Current : throw new InvalidOperationException("There are no more places to read at.");

    /// <summary>A reader of this library for every piece.</summary>
    internal sealed class Pipe(RandomReadCase point, int worker) : ReadWorker(point, worker)
    {
        internal override async ValueTask OperateAsync()
        {
            long offset = NextOffset();
            FilePipeReader reader = FilePipeReader.Create(Handle,
                new FilePipeReaderOptions { Offset = offset, Length = Point.PieceSize, BufferSize = Point.PieceSize, LeaveOpen = true });
            ReadResult result = await reader.ReadAtLeastAsync(Point.PieceSize);
            Point.Look(offset, result.Buffer.FirstSpan);
            await reader.CompleteAsync();
        }
    }

    /// <summary>RandomAccess.ReadAsync.</summary>
    internal sealed class Asynchronous(RandomReadCase point, int worker) : ReadWorker(point, worker)
    {
        private readonly byte[] _buffer = new byte[point.PieceSize];

        internal override async ValueTask OperateAsync()
        {
            long offset = NextOffset();
            int length = await RandomAccess.ReadAsync(Handle, _buffer, offset);
            Point.Look(offset, _buffer.AsSpan(0, length));
        }
    }

    /// <summary>RandomAccess.Read, which blocks.</summary>
    internal sealed class Blocking(RandomReadCase point, int worker) : ReadWorker(point, worker)
    {
        private readonly byte[] _buffer = new byte[point.PieceSize];

        internal override ValueTask OperateAsync()
        {
            long offset = NextOffset();
            int length = RandomAccess.Read(Handle, _buffer, offset);
            Point.Look(offset, _buffer.AsSpan(0, length));
            return default;
        }
    }
}
