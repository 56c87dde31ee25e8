using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// A request that means a resumable upload, for <see cref="ResumableUploadOptions.OnRequestAsync"/>: it may refuse the request.
/// </summary>
public sealed class ResumableUploadRequest : ResumableUpload
{
    internal ResumableUploadRequest(
        HttpContext context, string id, UploadState state, ResumableUploadOperation operation, IReadOnlyList<ResumableUpload> parts)
        : base(context, id, state)
    {
        Operation = operation;
        Parts = parts;
    }

    /// <summary>What the request wants.</summary>
    public ResumableUploadOperation Operation { get; }

    /// <summary>
    /// The parts of which the upload is to be made, in their order, each once; empty unless <see cref="Operation"/> is
    /// <see cref="ResumableUploadOperation.Concatenate"/>. All have the owner of this request.
    /// </summary>
    public IReadOnlyList<ResumableUpload> Parts { get; }

    /// <summary>The status that the request was refused with, if it was.</summary>
    internal int? RefusedWith { get; private set; }

    /// <summary>Refuses the request; an exception is not needed. The last call counts.</summary>
    /// <param name="statusCode">The status of the response: 400 to 599.</param>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="statusCode"/> is out of its range.</exception>
    public void Refuse(int statusCode)
    {
        ArgumentOutOfRangeException.ThrowIfLessThan(statusCode, 400);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(statusCode, 599);
        RefusedWith = statusCode;
    }
}
