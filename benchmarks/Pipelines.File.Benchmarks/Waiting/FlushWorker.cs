using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Waiting;

/// <summary>Writes a record to a file of its own, and has it on the device.</summary>
internal abstract class FlushWorker : WaitingWorker
{
    private FlushWorker()
    {
    }

    private protected byte[] Record { get; } = new byte[WaitingCase.FlushSize];

    /// <summary>A writer of this library.</summary>
    internal sealed class Pipe(string path) : FlushWorker
    {
        private readonly FilePipeWriter _writer = FilePipeWriter.Create(
            path, new FilePipeWriterOptions { FlushGuarantee = FlushGuarantee.Durable });

        internal override async ValueTask OperateAsync() => await _writer.WriteAsync(Record);

        public override ValueTask DisposeAsync() => _writer.CompleteAsync();
    }

    /// <summary>FileStream.WriteAsync, FlushAsync and Flush(true): there is no asynchronous way to the device.</summary>
    internal sealed class Stream(string path) : FlushWorker
    {
        private readonly FileStream _stream = new(path, FileMode.Create, FileAccess.Write, FileShare.Read, 4096, FileOptions.Asynchronous);

        internal override async ValueTask OperateAsync()
        {
            await _stream.WriteAsync(Record);
            await _stream.FlushAsync();
            _stream.Flush(flushToDisk: true);
        }

        public override ValueTask DisposeAsync() => _stream.DisposeAsync();
    }

    /// <summary>RandomAccess.Write and FlushToDisk, which block.</summary>
    internal sealed class Blocking(string path) : FlushWorker
    {
        private readonly SafeFileHandle _handle = File.OpenHandle(path, FileMode.Create, FileAccess.Write);
        private long _offset;

        internal override ValueTask OperateAsync()
        {
            RandomAccess.Write(_handle, Record, _offset);
            _offset += Record.Length;
            RandomAccess.FlushToDisk(_handle);
            return default;
        }

        public override ValueTask DisposeAsync()
        {
            _handle.Dispose();
            return default;
        }
    }
}
