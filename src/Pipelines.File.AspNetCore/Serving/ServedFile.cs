using Microsoft.Extensions.FileProviders;
using Microsoft.Extensions.Primitives;

namespace Pipelines.File.AspNetCore;

/// <summary>What the static files middleware has answered for a path, as long as the file is open and unchanged.</summary>
/// <param name="File">The open file, to which this holds no reference.</param>
/// <param name="Info">The file as the middleware has shown it to <c>OnPrepareResponse</c>.</param>
/// <param name="ContentType">The header, as are the next two.</param>
/// <param name="EntityTag">The header.</param>
/// <param name="LastModified">The header.</param>
internal sealed record ServedFile(
    OpenFile File, IFileInfo Info, StringValues ContentType, StringValues EntityTag, StringValues LastModified);
