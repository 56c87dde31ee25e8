using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// A whole resumable upload, for <see cref="ResumableUploadOptions.OnCompletedAsync"/>. It is valid until that has returned.
/// </summary>
public sealed class CompletedUpload : ResumableUpload
{
    private readonly StoredUpload _upload;

    internal CompletedUpload(HttpContext context, StoredUpload upload, FilePipeReader reader, ReadOnlyMemory<byte> hash)
        : base(context, upload.Id, upload.State)
    {
        _upload = upload;
        Reader = reader;
        Hash = hash;
    }

    /// <summary>A reader for the bytes of the upload, from the first one.</summary>
    public FilePipeReader Reader { get; }

    /// <summary>The hash of the upload, if <see cref="ResumableUploadOptions.Hash"/> asks for one; otherwise empty.</summary>
    public ReadOnlyMemory<byte> Hash { get; }

    /// <summary>
    /// Moves the upload under a name, whole: until then an existing file of that name stays as it is. It takes its turn, its time, and the
    /// permissions of the file that it replaces, as <c>SaveBodyAsync</c> does. On another file system than that of
    /// <see cref="ResumableUploadOptions.Folder"/> it is copied. Of a process that was killed meanwhile, the next call with the same path
    /// finds the file there.
    /// </summary>
    /// <param name="path">
    /// The path of the file, absolute or relative to the current directory. Its folder must exist. Check it first if a part of it comes
    /// from the client.
    /// </param>
    /// <param name="options">
    /// <see cref="SaveBodyOptions.Overwrite"/>, <see cref="SaveBodyOptions.Durable"/> (also if the endpoint is),
    /// <see cref="SaveBodyOptions.UnixCreateMode"/> (not reduced by the umask), <see cref="SaveBodyOptions.IfMatch"/>,
    /// <see cref="SaveBodyOptions.IfNoneMatch"/>, <see cref="SaveBodyOptions.EntityTag"/> and
    /// <see cref="SaveBodyOptions.BeforeReplaceAsync"/> are used. The others are about the receiving, which is over.
    /// </param>
    /// <param name="cancellationToken">Cancels the wait for other uploads of the name.</param>
    /// <returns>What a client may know about the new file.</returns>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty, or contains a NUL, as a name of a client may.</exception>
    /// <exception cref="InvalidOperationException">The upload was saved already, under another name.</exception>
    /// <exception cref="BadHttpRequestException">A precondition is not met (412).</exception>
    /// <exception cref="FileExistsException">
    /// The file exists, and <see cref="SaveBodyOptions.Overwrite"/> is <see langword="false"/>.
    /// </exception>
    /// <exception cref="UnauthorizedAccessException">You may not write to the folder, or the path is that of a folder.</exception>
    /// <exception cref="IOException">The folder does not exist, or a system call failed. The upload stays.</exception>
    public Task<SavedFile> SaveAsync(string path, SaveBodyOptions? options = null, CancellationToken cancellationToken = default)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        options ??= SaveBodyOptions.Default;
        options.Validate();
        return _upload.SaveAsync(System.IO.Path.GetFullPath(path), options, Hash, cancellationToken);
    }
}
