using System.Buffers;
using System.Security.Cryptography;
using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>The file that an upload becomes, whole or not at all. Used by one request; whoever has made it completes it or gives it up.</summary>
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

    /// <summary>Opens it beside its name. Everything that can be known before a byte is read is thrown here.</summary>
    internal static UploadedFile Create(string path, SaveBodyOptions options)
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
    internal async Task CompleteAsync(CancellationToken cancellationToken)
    {
        if (_options.Inspect is { } inspect)
        {
            await Writer.FlushAsync(FlushGuarantee.Written, cancellationToken).ConfigureAwait(false);
            await InspectAsync(inspect, cancellationToken).ConfigureAwait(false);
        }

        if (_options.Durable || _precondition.IsAny)
        {
            // So that nothing of it is left for the moment in which others of that name wait.
            await Writer.FlushAsync(_options.Durable ? FlushGuarantee.Durable : FlushGuarantee.Written, cancellationToken).ConfigureAwait(false);
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

    /// <summary>Leaves nothing of it.</summary>
    internal ValueTask GiveUpAsync()
    {
        _hash?.Dispose();
        return Writer.DisposeAsync();
    }

    internal static BadHttpRequestException TooLong(long maxLength)
        => new($"The upload is longer than the {maxLength} bytes that are allowed.", StatusCodes.Status413PayloadTooLarge);

    private async ValueTask InspectAsync(Func<UploadInspection, CancellationToken, ValueTask<bool>> inspect, CancellationToken cancellationToken)
    {
        FilePipeReader reader = FilePipeReader.Create(Writer.UnfinishedPath, new FilePipeReaderOptions { Share = FileShare.ReadWrite | FileShare.Delete });
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
