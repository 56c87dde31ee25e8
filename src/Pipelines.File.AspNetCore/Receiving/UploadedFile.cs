using System.Diagnostics;
using System.Security.Cryptography;
using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>The file of an upload, which is saved whole or not at all. Used by one request.</summary>
internal sealed class UploadedFile
{
    private readonly string _path;
    private readonly SaveBodyOptions _options;
    private readonly UploadPrecondition _precondition;
    private readonly UploadRequest _request;
    private readonly IncrementalHash? _hash;

    private UploadedFile(
        string path, SaveBodyOptions options, UploadPrecondition precondition, UploadRequest request, IncrementalHash? hash)
    {
        _path = path;
        _options = options;
        _precondition = precondition;
        _request = request;
        _hash = hash;
        precondition.Check(new FileInfo(path));
        FilePipeWriterOptions writing = new()
        {
            Replace = true,
            Mode = UploadName.Replaces(options, precondition) ? FileMode.Create : FileMode.CreateNew,
            FlushGuarantee = options.Durable ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind,
            ReplacesLinks = true,
            UnixCreateMode = options.UnixCreateMode,
            Caching = options.Caching,
        };
        Writer = SpareDescriptors.Open(path, path => FilePipeWriter.Create(path, writing));
    }

    /// <summary>The writer of the file. Its bytes must also be passed to <see cref="Append"/>.</summary>
    internal FilePipeWriter Writer { get; }

    /// <summary>The number of bytes that were passed to <see cref="Append"/>.</summary>
    internal long Length { get; private set; }

    /// <summary>What the upload is doing. Whoever copies sets <see cref="UploadStage.Reading"/> while it waits for the client.</summary>
    internal UploadStage Stage { get; set; } = UploadStage.Writing;

    /// <summary>Saves an upload, whole or not at all, and counts it.</summary>
    /// <param name="path">The path of the file.</param>
    /// <param name="options">Validated options.</param>
    /// <param name="request">The request that the upload comes with.</param>
    /// <param name="begin">Called before the file is opened, or <see langword="null"/>.</param>
    /// <param name="copyAsync">Copies the upload to the file.</param>
    /// <param name="cancellationToken">Cancels the saving.</param>
    internal static async Task<SavedFile> SaveAsync(
        string path, SaveBodyOptions options, UploadRequest request, Action? begin, Func<UploadedFile, CancellationToken, Task> copyAsync,
        CancellationToken cancellationToken)
    {
        UploadedFile? file = null;
        using Activity? activity = FilePipelinesActivities.Begin("pipelines.file.upload");
        try
        {
            cancellationToken.ThrowIfCancellationRequested();
            begin?.Invoke();
            file = Create(path, options, request);
            await copyAsync(file, cancellationToken).ConfigureAwait(false);
            SavedFile saved = await file.CompleteAsync(cancellationToken).ConfigureAwait(false);
            request.Saved(saved.Length);
            return saved;
        }
        catch (Exception e)
        {
            activity.Fail(request.Broke(e, file?.Stage ?? UploadStage.Checking, file?.Length ?? 0));
            if (file is not null)
            {
                await file.Writer.DisposeAsync().ConfigureAwait(false);
            }

            throw;
        }
        finally
        {
            file?._hash?.Dispose();
        }
    }

    /// <summary>Creates the unfinished file. Everything that can fail before a byte is read fails here.</summary>
    private static UploadedFile Create(string path, SaveBodyOptions options, UploadRequest request)
    {
        UploadPrecondition precondition = new(options);
        IncrementalHash? hash = options.Hash is { } name ? IncrementalHash.CreateHash(name) : null;
        try
        {
            return new UploadedFile(path, options, precondition, request, hash);
        }
        catch (Exception e)
        {
            hash?.Dispose();
            if (e is FileExistsException && precondition.RequiresNoFile)
            {
                throw UploadPrecondition.Failed(e);
            }

            throw;
        }
    }

    /// <summary>Counts and hashes the next bytes of the file. It does not write them.</summary>
    /// <exception cref="BadHttpRequestException">The upload is longer than <see cref="SaveBodyOptions.MaxLength"/> (413).</exception>
    internal void Append(ReadOnlySpan<byte> bytes)
    {
        Length += bytes.Length;
        if (Length > _options.MaxLength)
        {
            throw TooLong(_options.MaxLength.Value);
        }

        _hash?.AppendData(bytes);
    }

    /// <summary>Reports the progress, and flushes the writer.</summary>
    internal async ValueTask FlushAsync(CancellationToken cancellationToken)
    {
        _options.Progress?.Report(Length);
        await Writer.FlushAsync(cancellationToken).ConfigureAwait(false);
    }

    internal static BadHttpRequestException TooLong(long maxLength)
        => new($"The upload is longer than the {maxLength} bytes that are allowed.", StatusCodes.Status413PayloadTooLarge);

    /// <summary>Has the upload inspected, checks the preconditions again, and gives the file its name.</summary>
    private async Task<SavedFile> CompleteAsync(CancellationToken cancellationToken)
    {
        byte[]? hash = _hash?.GetHashAndReset();
        if (_options.InspectAsync is { } inspect)
        {
            await Writer.FlushAsync(FlushGuarantee.Written, cancellationToken).ConfigureAwait(false);
            await UploadInspection.RunAsync(
                inspect, Writer.Handle, Length, hash, _request, stage => Stage = stage, cancellationToken).ConfigureAwait(false);
        }

        // Written, or synced, before the lock is taken, so that other uploads of this name do not wait for that.
        await Writer.FlushAsync(
            _options.Durable ? FlushGuarantee.Durable : FlushGuarantee.Written, cancellationToken).ConfigureAwait(false);
        UploadName name = new(_path, _options, _precondition, Writer.Handle);
        return await name.TakeAsync(Length, hash, stage => Stage = stage, _ => Writer.CompleteAsync(), cancellationToken)
            .ConfigureAwait(false);
    }
}
