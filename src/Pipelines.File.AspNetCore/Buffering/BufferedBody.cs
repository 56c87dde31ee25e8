using System.IO.Pipelines;
using Microsoft.AspNetCore.Http.Features;

namespace Pipelines.File.AspNetCore;

/// <summary>The reader of a buffered body: a new one whenever the body's position is 0.</summary>
internal sealed class BufferedBody(Stream body) : IRequestBodyPipeFeature
{
    private const int BufferSize = 64 * 1024;

    private PipeReader? _reader;

    public PipeReader Reader
    {
        get
        {
            if (_reader is null || body.Position == 0)
            {
                _reader = PipeReader.Create(body, new StreamPipeReaderOptions(bufferSize: BufferSize, leaveOpen: true));
            }

            return _reader;
        }
    }
}
