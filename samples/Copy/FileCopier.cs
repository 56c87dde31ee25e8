using System.IO.Pipelines;
using System.Security.Cryptography;
using Pipelines.File;

namespace CopySample;

/// <summary>Copies one file: each byte is read once, into the writer's own memory, and hashed there on the way.</summary>
internal sealed class FileCopier(Settings settings, Totals totals)
{
    /// <summary>How long somebody has to write into a FIFO before it is passed over.</summary>
    private static readonly TimeSpan s_fifoPatience = TimeSpan.FromSeconds(1);

    /// <summary>Copies a regular file to a name, under which it appears whole. Returns its SHA-256 where that is asked for.</summary>
    /// <exception cref="IOException">It cannot be read or written, or is no regular file.</exception>
    internal async Task<string?> CopyAsync(FileInfo source, string destination, CancellationToken cancellationToken)
    {
        await using FilePipeReader reader = await OpenAsync(source.FullName, cancellationToken);
        if (reader.Length is not long length)
        {
            throw new IOException($"'{source.FullName}' is not a regular file, and is passed over.");
        }

        FilePipeWriterOptions options = new()
        {
            Replace = true,
            PreallocationSize = length,
            FlushGuarantee = settings.Durable ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind,
            Caching = settings.Caching,
        };
        await using FilePipeWriter writer = FilePipeWriter.Create(destination, options);
        string? hash = await CopyAsync(reader, writer, cancellationToken);

        // Only now does the file appear; an exception before this leaves what was there.
        await writer.CompleteAsync();
        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(destination, source.UnixFileMode);
        }

        File.SetLastWriteTimeUtc(destination, source.LastWriteTimeUtc);
        totals.AddFile();
        return hash;
    }

    /// <summary>Copies what is left of a reader into a writer, and completes neither.</summary>
    internal async Task<string?> CopyAsync(FilePipeReader reader, FilePipeWriter writer, CancellationToken cancellationToken)
    {
        using IncrementalHash? hash = settings.Hash ? IncrementalHash.CreateHash(HashAlgorithmName.SHA256) : null;
        PipeWriter counted = writer.Tap(bytes =>
        {
            hash?.AppendData(bytes);
            totals.AddBytes(bytes.Length);
        });
        await reader.CopyToAsync(counted, cancellationToken);
        return hash is null ? null : Convert.ToHexStringLower(hash.GetHashAndReset());
    }

    // A FIFO that nobody writes to waits here without a thread.
    private async Task<FilePipeReader> OpenAsync(string path, CancellationToken cancellationToken)
    {
        using CancellationTokenSource patience = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        patience.CancelAfter(s_fifoPatience);
        try
        {
            return await FilePipeReader.OpenAsync(
                path, new FilePipeReaderOptions { FileOptions = FileOptions.SequentialScan, Caching = settings.Caching }, patience.Token);
        }
        catch (OperationCanceledException) when (!cancellationToken.IsCancellationRequested)
        {
            throw new IOException($"'{path}' is a FIFO that nobody writes to, and is passed over.");
        }
    }
}
