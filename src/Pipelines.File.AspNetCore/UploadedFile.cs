using System.Buffers;
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
            Mode = Replaces ? FileMode.Create : FileMode.CreateNew,
            FlushGuarantee = options.Durable ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind,
            ReplacesLinks = true,
            UnixCreateMode = options.UnixFileMode,
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

    private bool Replaces => _options.Overwrite && !_precondition.RequiresNoFile;

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
        try
        {
            cancellationToken.ThrowIfCancellationRequested();
            begin?.Invoke();
            file = Create(path, options, request);
            await copyAsync(file, cancellationToken).ConfigureAwait(false);
            SavedFile saved = await file.CompleteAsync(cancellationToken).ConfigureAwait(false);
            request.Saved();
            return saved;
        }
        catch (Exception e)
        {
            request.Broke(e, file?.Stage ?? UploadStage.Checking);
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
        if (_options.Inspect is { } inspect)
        {
            await Writer.FlushAsync(FlushGuarantee.Written, cancellationToken).ConfigureAwait(false);
            await InspectAsync(inspect, hash, cancellationToken).ConfigureAwait(false);
        }

        // Written, or synced, before the lock is taken, so that other uploads of this name do not wait for that.
        await Writer.FlushAsync(
            _options.Durable ? FlushGuarantee.Durable : FlushGuarantee.Written, cancellationToken).ConfigureAwait(false);
        using NameLock turn = await NameLock.TakeAsync(_path, cancellationToken).ConfigureAwait(false);
        FileInfo old = await TakeTimeAsync(cancellationToken).ConfigureAwait(false);
        bool replaces = old.Exists && Replaces;
        if (replaces && _options.BeforeReplace is { } beforeReplace)
        {
            Stage = UploadStage.Replacing;
            await beforeReplace(old, cancellationToken).ConfigureAwait(false);
            Stage = UploadStage.Writing;
        }

        string? tag = _options.EntityTag is null
            ? UploadPrecondition.TagOf(TimeOf(), Length) : null;
        try
        {
            await Writer.CompleteAsync().ConfigureAwait(false);
        }
        catch (FileExistsException e) when (_precondition.RequiresNoFile)
        {
            throw UploadPrecondition.Failed(e);
        }

        return new SavedFile(Length, hash, tag ?? TagByOptions(), replaces);
    }

    private DateTime TimeOf()
    {
        try
        {
            return System.IO.File.GetLastWriteTimeUtc(Writer.Handle);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw Named(e);
        }
    }

    private void SetTime(DateTime time)
    {
        try
        {
            System.IO.File.SetLastWriteTimeUtc(Writer.Handle, time);
            if (_options.Durable)
            {
                // The sync of the bytes was before this.
                RandomAccess.FlushToDisk(Writer.Handle);
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw Named(e);
        }
    }

    // The runtime knows no path of a handle.
    private IOException Named(Exception e) => new($"{e.Message} : '{_path}'", e);

    /// <summary>
    /// Checks the preconditions, and makes the second of the new file later than that of the file that it replaces, and not later than the
    /// clock's: waits for the next second if it has to. So no two versions of a file have the same entity tag or Last-Modified. Called in
    /// the turn of the name. Returns the file that has the name.
    /// </summary>
    private async Task<FileInfo> TakeTimeAsync(CancellationToken cancellationToken)
    {
        DateTime written = UploadPrecondition.ToSecond(TimeOf());
        while (true)
        {
            FileInfo old = new(_path);
            _precondition.Check(old);
            if (!old.Exists || !Replaces)
            {
                return old;
            }

            DateTime replaced = UploadPrecondition.ToSecond(old.LastWriteTimeUtc);
            DateTime now = DateTime.UtcNow;
            if (replaced < written)
            {
                return old;
            }

            // A file whose time is ahead of the clock gives way to the clock.
            if (replaced != UploadPrecondition.ToSecond(now))
            {
                SetTime(now);

                return old;
            }

            await Task.Delay(replaced.AddSeconds(1) - now, cancellationToken).ConfigureAwait(false);
        }
    }

    private string? TagByOptions()
    {
        try
        {
            return _options.EntityTag!(new FileInfo(_path));
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // Another program has taken the file away, and the upload was saved all the same.
            return null;
        }
    }

    private async ValueTask InspectAsync(
        Func<UploadInspection, CancellationToken, ValueTask<bool>> inspect, byte[]? hash, CancellationToken cancellationToken)
    {
        Stage = UploadStage.Inspecting;
        FilePipeReader reader = FilePipeReader.Create(Writer.Handle, new FilePipeReaderOptions { LeaveOpen = true });
        await using (reader.ConfigureAwait(false))
        {
            InvalidDataException? reason = null;
            try
            {
                if (await inspect(new UploadInspection(reader, Length, hash), cancellationToken).ConfigureAwait(false))
                {
                    Stage = UploadStage.Writing;
                    return;
                }
            }
            catch (InvalidDataException e)
            {
                reason = e;
            }
            catch (Exception e) when (e is not BadHttpRequestException && !cancellationToken.IsCancellationRequested)
            {
                _request.LogInspection(e);
                throw new BadHttpRequestException("The upload could not be inspected.", StatusCodes.Status503ServiceUnavailable, e);
            }

            throw new BadHttpRequestException("The inspection has refused the upload.", StatusCodes.Status422UnprocessableEntity, reason!);
        }
    }
}
