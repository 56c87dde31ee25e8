using System.IO.Pipelines;
using Microsoft.AspNetCore.Http.Features;
using Pipelines.File;
using Pipelines.File.AspNetCore;

namespace Microsoft.AspNetCore.Http;

/// <summary>Buffers the body of a request, so that it can be read more than once.</summary>
public static class FilePipelinesRequestBufferingExtensions
{
    /// <summary>
    /// Reads the whole body into a pipe that goes on in a file. Afterwards <see cref="HttpRequest.Body"/> can seek, and
    /// <see cref="HttpRequest.BodyReader"/> begins anew when the position of the body is 0: check a signature first, set
    /// <c>request.Body.Position = 0</c>, and bind JSON or a form then.
    /// </summary>
    /// <remarks>
    /// The server's own limit of the size holds, too. The pipe is disposed of at the end of the request. A body that is buffered already
    /// stays where it is: the call returns its pipe, and sets the position to 0.
    /// </remarks>
    /// <param name="request">The request, whose body nobody has read yet.</param>
    /// <param name="options">
    /// How to buffer; <see langword="null"/> means the defaults, which set no limit. <see cref="FileBufferingPipeOptions.Keep"/> has to be
    /// set.
    /// </param>
    /// <param name="cancellationToken">Ends the reading.</param>
    /// <exception cref="BadHttpRequestException">
    /// 413: the body is longer than <see cref="FileBufferingPipeOptions.MaxLength"/>; if its length was announced, nothing was read.
    /// </exception>
    /// <exception cref="IOException">The pipe could not go on in a file, or the client is gone.</exception>
    public static async Task<FileBufferingPipe> BufferBodyAsync(this HttpRequest request, FileBufferingPipeOptions? options = null,
        CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(request);
        if (request.ContentLength > options?.MaxLength)
        {
            throw TooLong(request.HttpContext, options.MaxLength.Value, null);
        }

        IFeatureCollection features = request.HttpContext.Features;
        if (features.Get<IRequestBodyPipeFeature>() is BufferedBody { Pipe: { } buffered })
        {
            request.Body.Position = 0;
            return buffered.Length > options?.MaxLength ? throw TooLong(request.HttpContext, options.MaxLength.Value, null)
                : buffered;
        }

        FileBufferingPipe pipe = new(options);
        request.HttpContext.Response.RegisterForDisposeAsync(pipe);
        Stream body = pipe.AsStream();
        try
        {
            await request.BodyReader.CopyToAsync(pipe.Writer, cancellationToken).ConfigureAwait(false);
            await pipe.Writer.CompleteAsync().ConfigureAwait(false);
        }
        catch (BufferTooLongException e)
        {
            throw TooLong(request.HttpContext, e.MaxLength, e);
        }

        request.Body = body;
        features.Set<IRequestBodyPipeFeature>(new BufferedBody(request, pipe, body));
        return pipe;
    }

    private static BadHttpRequestException TooLong(HttpContext context, long most, Exception? cause)
    {
        string message = $"The body is longer than the {most} bytes that are allowed.";
        BadHttpRequestException reason = cause is null ? new BadHttpRequestException(message, StatusCodes.Status413PayloadTooLarge)
            : new BadHttpRequestException(message, StatusCodes.Status413PayloadTooLarge, cause);
        context.Items[typeof(UploadRefusal)] = new UploadRefusal(reason, reason.StatusCode, "too_long", message);   // for UseFilePipelines
        return reason;
    }
}
