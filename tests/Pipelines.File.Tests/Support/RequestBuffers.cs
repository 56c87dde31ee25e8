using Pipelines.File.IO;

namespace FilePipelines.Tests;

internal static class RequestBuffers
{
    extension(FileRequest request)
    {
        /// <summary>All pieces of its memory.</summary>
        internal IEnumerable<TransferBuffer> Buffers => Enumerable.Range(0, request.BufferCount).Select(index => request.BufferAt(index));
    }
}
