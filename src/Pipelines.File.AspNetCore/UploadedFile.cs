using System.Buffers;
using System.Security.Cryptography;
using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>The file of an upload, which is saved whole or not at all. Used by one request.</summary>
internal sealed class UploadedFile
{
    // Held while an upload checks the existing file and then takes its name, so one upload of a name does this at a time. A name has the
    // lock at the index of its hash; names that share a lock wait for each other.
    private static readonly SemaphoreSlim[] s_nameLocks = [.. Enumerable.Range(0, 256).Select(static _ => new SemaphoreSlim(1))];

    private readonly string _path;
    private readonly SaveBodyOptions _options;
    private readonly UploadPrecondition _precondition;
    private readonly IncrementalHash? _hash;

    private UploadedFile(string path, SaveBodyOptions options, UploadPrecondition precondition, IncrementalHash? hash)
    {
        _path = path;
        _options = options;
        _precondition = precondition;
        _hash = hash;
        precondition.Check(path);
        FilePipeWriterOptions writing = new()
        {
            Replace = true,
            Mode = options.Overwrite && !precondition.RequiresNoFile ? FileMode.Create : FileMode.CreateNew,
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

    /// <summary>Saves an upload, whole or not at all, and counts it in the metrics. Returns its length in bytes.</summary>
    /// <param name="path">The path of the file.</param>
    /// <param name="options">Validated options.</param>
    /// <param name="begin">Called before the file is opened, or <see langword="null"/>.</param>
    /// <param name="copyAsync">Copies the upload to the file.</param>
    /// <param name="cancellationToken">Cancels the saving.</param>
    internal static async Task<long> SaveAsync(
        string path, SaveBodyOptions options, Action? begin, Func<UploadedFile, CancellationToken, Task> copyAsync,
        CancellationToken cancellationToken)
    {
        UploadedFile? file = null;
        try
        {
            begin?.Invoke();
            file = Create(path, options);
            await copyAsync(file, cancellationToken).ConfigureAwait(false);
            await file.CompleteAsync(cancellationToken).ConfigureAwait(false);
            return file.Length;
        }
        catch (Exception e)
        {
            FilePipelinesMetrics.Broke(e);
            if (file is not null)
            {
                file._hash?.Dispose();
                await file.Writer.DisposeAsync().ConfigureAwait(false);
            }

            throw;
        }
    }

    /// <summary>Creates the unfinished file. Everything that can fail before a byte is read fails here.</summary>
    private static UploadedFile Create(string path, SaveBodyOptions options)
    {
        UploadPrecondition precondition = new(options);
        IncrementalHash? hash = options.Hash is { } name ? IncrementalHash.CreateHash(name) : null;
        try
        {
            return new UploadedFile(path, options, precondition, hash);
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

    /// <summary>Has the upload inspected, checks the preconditions again, and gives the file its name.</summary>
    private async Task CompleteAsync(CancellationToken cancellationToken)
    {
        if (_options.Inspect is { } inspect)
        {
            await Writer.FlushAsync(FlushGuarantee.Written, cancellationToken).ConfigureAwait(false);
            await InspectAsync(inspect, cancellationToken).ConfigureAwait(false);
        }

        if (_options.Durable || _precondition.IsAny)
        {
            // Written, or synced, before the lock is taken, so that other uploads of this name do not wait for that.
            await Writer.FlushAsync(
                _options.Durable ? FlushGuarantee.Durable : FlushGuarantee.Written, cancellationToken).ConfigureAwait(false);
        }

        SemaphoreSlim nameLock = s_nameLocks[
            (uint)Path.GetFullPath(_path).GetHashCode(StringComparison.OrdinalIgnoreCase) % (uint)s_nameLocks.Length];
        await nameLock.WaitAsync(cancellationToken).ConfigureAwait(false);
        try
        {
            _precondition.CheckAndAdjustTime(_path, Writer.Handle, Length);
            await Writer.CompleteAsync().ConfigureAwait(false);
        }
        catch (FileExistsException e) when (_precondition.RequiresNoFile)
        {
            throw UploadPrecondition.Failed(e);
        }
        finally
        {
            nameLock.Release();
        }

        _hash?.Dispose();
        FilePipelinesMetrics.Saved();
    }

    internal static BadHttpRequestException TooLong(long maxLength)
        => new($"The upload is longer than the {maxLength} bytes that are allowed.", StatusCodes.Status413PayloadTooLarge);

    private async ValueTask InspectAsync(
        Func<UploadInspection, CancellationToken, ValueTask<bool>> inspect, CancellationToken cancellationToken)
    {
        FilePipeReader reader = FilePipeReader.Create(Writer.Handle, new FilePipeReaderOptions { LeaveOpen = true });
        await using (reader.ConfigureAwait(false))
        {
            Exception? reason = null;
            try
            {
                if (await inspect(new UploadInspection(reader, Length, _hash?.GetCurrentHash()), cancellationToken).ConfigureAwait(false))
                {
                    return;
                }
            }
            catch (Exception e) when (e is not BadHttpRequestException && !cancellationToken.IsCancellationRequested)
            {
                reason = e;
            }

            throw new BadHttpRequestException("The inspection has refused the upload.", StatusCodes.Status422UnprocessableEntity, reason!);
        }
    }
}
