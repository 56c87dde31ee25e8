using System.Buffers;
using System.IO.Pipelines;
using Pipelines.File;

namespace FilePipelinesBenchmarks.Durable;

/// <summary>All producers share one writer under a lock, and each waits for its own flush.</summary>
internal sealed class SharedWriterCommits(CommitFile file) : CommitWay("FilePipeWriter, shared under a lock", file)
{
    private readonly Lock _lock = new();
    private string _path = "";
    private FilePipeWriter _writer = null!;

    internal override async Task OpenAsync(string path, int producers)
    {
        _path = path;
        if (File == CommitFile.Preallocated)
        {
            PreallocatedFile.Make(path);
        }

        _writer = await FilePipeWriter.OpenAsync(
            path, new FilePipeWriterOptions { Mode = FileMode.OpenOrCreate, FlushGuarantee = FlushGuarantee.Durable });
    }

    internal override async ValueTask BeginRoundAsync()
    {
        if (File == CommitFile.Preallocated)
        {
            await _writer.CompleteAsync();
            _writer = await FilePipeWriter.OpenAsync(
                _path, new FilePipeWriterOptions { Mode = FileMode.Open, FlushGuarantee = FlushGuarantee.Durable });
        }
    }

    internal override async ValueTask CommitAsync(int producer, byte[] record)
    {
        ValueTask<FlushResult> flush;
        lock (_lock)
        {
            _writer.Write(record);
            flush = _writer.FlushAsync();
        }

        await flush;
    }

    public override void Dispose() => _writer.Dispose();
}
