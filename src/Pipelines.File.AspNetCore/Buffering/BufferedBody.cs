using System.IO.Pipelines;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The reader of a buffered body, or of what middleware has put in its place: a new one whenever the body's position is 0.
/// </summary>
internal sealed class BufferedBody(HttpRequest request, FileBufferingPipe pipe, Stream body) : IRequestBodyPipeFeature
{
    private const int BufferSize = 64 * 1024;

    private PipeReader? _reader;
    private Stream? _read;

    public PipeReader Reader
    {
        get
        {
            Stream now = request.Body;

            // The position of an empty body is 0 also between a read and its AdvanceTo.
            if (_read != now || (now is { CanSeek: true, Position: 0 } && now.Length > 0))
            {
                _read = now;
                _reader = PipeReader.Create(now, new StreamPipeReaderOptions(bufferSize: BufferSize, leaveOpen: true));
            }

            return _reader!;
        }
    }

    /// <summary>The pipe, if the body is still its own.</summary>
    internal FileBufferingPipe? Pipe => request.Body == body ? pipe : null;
}
