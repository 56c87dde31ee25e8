using System.Buffers;
using System.Security.Cryptography;
using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>The file that an upload becomes, whole or not at all. Used by one request.</summary>
internal sealed class UploadedFile
{
    // One upload of a name at a time looks at what has the name and then takes it: a lock for each of so many parts of all names.
    private static readonly SemaphoreSlim[] s_names = [.. Enumerable.Range(0, 256).Select(static _ => new SemaphoreSlim(1))];

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
        Writer = FilePipeWriter.Create(path, new FilePipeWriterOptions
        {
            Replace = true,
            Mode = options.Overwrite && !precondition.IsForNone ? FileMode.Create : FileMode.CreateNew,
            FlushGuarantee = options.Durable ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind,
            ReplacesLinks = true,
            UnixCreateMode = options.UnixFileMode,
            Caching = options.Caching,
        });
    }

    /// <summary>Where the bytes go, each of which is then <see cref="Took"/>.</summary>
    internal FilePipeWriter Writer { get; }

    /// <summary>Bytes that it has.</summary>
    internal long Length { get; private set; }

    /// <summary>Saves what a copy gives it, whole or not at all, and counts that. How long it is is returned.</summary>
    /// <param name="path">Its name.</param>
    /// <param name="options">They are valid.</param>
    /// <param name="begin">Called before the file is opened; <see langword="null"/>: nothing has to be looked at.</param>
    /// <param name="copyAsync">Gives the file its bytes.</param>
    /// <param name="cancellationToken">Ends it.</param>
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

    /// <summary>Opens it beside its name. Everything that can be known before a byte is read is thrown here.</summary>
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
            if (e is FileExistsException && precondition.IsForNone)
            {
                throw UploadPrecondition.Failed(e);
            }

            throw;
        }
    }

    /// <summary>The next bytes of the file.</summary>
    /// <exception cref="BadHttpRequestException">There are more than are allowed.</exception>
    internal void Took(ReadOnlySpan<byte> bytes)
    {
        Length += bytes.Length;
        if (Length > _options.MaxLength)
        {
            throw TooLong(_options.MaxLength.Value);
        }

        _hash?.AppendData(bytes);
    }

    /// <summary>Hands over what was taken, and tells how much it is.</summary>
    internal async ValueTask FlushAsync(CancellationToken cancellationToken)
    {
        _options.Progress?.Report(Length);

        // Durable is the whole, once, in the end.
        await Writer.FlushAsExactlyAsync(FlushGuarantee.WriteBehind, cancellationToken).ConfigureAwait(false);
    }

    /// <summary>Has it looked at, and gives it its name.</summary>
    private async Task CompleteAsync(CancellationToken cancellationToken)
    {
        if (_options.Inspect is { } inspect)
        {
            await Writer.FlushAsync(FlushGuarantee.Written, cancellationToken).ConfigureAwait(false);
            await InspectAsync(inspect, cancellationToken).ConfigureAwait(false);
        }

        if (_options.Durable || _precondition.IsAny)
        {
            // So that nothing of it is left for the moment in which others of that name wait.
            await Writer.FlushAsync(
                _options.Durable ? FlushGuarantee.Durable : FlushGuarantee.Written, cancellationToken).ConfigureAwait(false);
        }

        SemaphoreSlim name = s_names[(uint)Path.GetFullPath(_path).GetHashCode(StringComparison.OrdinalIgnoreCase) % (uint)s_names.Length];
        await name.WaitAsync(cancellationToken).ConfigureAwait(false);
        try
        {
            _precondition.CheckAndTell(_path, Writer.OpenedFile.Handle, Length);
            await Writer.CompleteAsync().ConfigureAwait(false);
        }
        catch (FileExistsException e) when (_precondition.IsForNone)
        {
            throw UploadPrecondition.Failed(e);
        }
        finally
        {
            name.Release();
        }

        _hash?.Dispose();
        FilePipelinesMetrics.Saved();
    }

    internal static BadHttpRequestException TooLong(long maxLength)
        => new($"The upload is longer than the {maxLength} bytes that are allowed.", StatusCodes.Status413PayloadTooLarge);

    private async ValueTask InspectAsync(
        Func<UploadInspection, CancellationToken, ValueTask<bool>> inspect, CancellationToken cancellationToken)
    {
        FilePipeReader reader = FilePipeReader.Create(
            Writer.UnfinishedPath, new FilePipeReaderOptions { Share = FileShare.ReadWrite | FileShare.Delete });
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
