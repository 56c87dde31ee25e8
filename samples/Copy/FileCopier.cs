using System.Buffers;
using System.IO.Pipelines;
using System.Security.Cryptography;
using Pipelines.File;

namespace CopySample;

/// <summary>Copies one file: each byte is read once, into the writer's own memory, and hashed there on the way.</summary>
/// <remarks>
/// Thousands of small files with SHA-256 take 0.9 to 2.1 times as long as with File.Copy and SHA256.HashData: 37 system calls a file
/// against 27 (strace -c), because a copy appears whole, and nobody may read it before who may not read the source; and through memory,
/// where the kernel copies by itself. Large files are read once, and not twice.
/// </remarks>
internal sealed class FileCopier(Settings settings, Totals totals)
{
    /// <summary>
    /// The length of a small file, bytes: it is copied on the current thread, because the way to another thread and back takes longer than
    /// the calls that would wait there.
    /// </summary>
    private const int SmallLength = 256 * 1024;

    /// <summary>How long somebody has to write into a FIFO before it is passed over.</summary>
    private static readonly TimeSpan s_fifoPatience = TimeSpan.FromSeconds(1);

    private static readonly UnixFileMode s_permissions = (UnixFileMode)0b111_111_111;

    private FilePipeReaderOptions Reading => new() { FileOptions = FileOptions.SequentialScan, Caching = settings.Caching };

    /// <summary>Copies a regular file to a name, under which it appears whole. Returns its SHA-256 where that is asked for.</summary>
    /// <exception cref="IOException">It cannot be read or written, or is no regular file.</exception>
    internal async Task<string?> CopyAsync(FileInfo source, string destination, CancellationToken cancellationToken)
    {
        // What a link leads to has the length, the mode and the time. A FIFO and a device have the length 0.
        source = source.ResolveLinkTarget(returnFinalTarget: true) as FileInfo ?? source;
        bool isSmall = source.Length is > 0 and <= SmallLength && !settings.Durable;
        await using FilePipeReader reader = isSmall ? FilePipeReader.Create(source.FullName, Reading)
            : await OpenAsync(source.FullName, cancellationToken);
        if (reader.Length is not long length)
        {
            throw new IOException($"'{source.FullName}' is not a regular file, and is passed over.");
        }

        FilePipeWriterOptions options = new()
        {
            Replace = true,
            PreallocationSize = isSmall ? 0 : length,
            FlushGuarantee = settings.Durable ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind,
            Caching = settings.Caching,

            // From the first byte on nobody may read the copy who may not read the source.
            UnixCreateMode = OperatingSystem.IsWindows() ? null : source.UnixFileMode & s_permissions,
        };
        await using FilePipeWriter writer = FilePipeWriter.Create(destination, options);
        string? hash = await CopyAsync(reader, writer, cancellationToken, isSmall ? SmallLength : 0);

        // Only now does the file appear; an exception before this leaves what was there.
        if (isSmall)
        {
            writer.Complete();
        }
        else
        {
            await writer.CompleteAsync();
        }

        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(destination, source.UnixFileMode);
        }

        File.SetLastWriteTimeUtc(destination, source.LastWriteTimeUtc);
        totals.AddFile();
        return hash;
    }

    /// <summary>Copies what is left of a reader into a writer, and completes neither.</summary>
    /// <param name="reader">Where the bytes come from.</param>
    /// <param name="writer">Where they go.</param>
    /// <param name="cancellationToken">Ends the copy between two reads.</param>
    /// <param name="unflushed">So many bytes are copied without a flush: if there are no more, the completion writes them all.</param>
    internal async Task<string?> CopyAsync(
        FilePipeReader reader, FilePipeWriter writer, CancellationToken cancellationToken, int unflushed = 0)
    {
        using IncrementalHash? hash = settings.Hash ? IncrementalHash.CreateHash(HashAlgorithmName.SHA256) : null;
        PipeWriter counted = writer.Tap(bytes =>
        {
            hash?.AppendData(bytes);
            totals.AddBytes(bytes.Length);
        });
        bool isEnd = false;
        if (unflushed > 0)
        {
            ReadResult read = await reader.ReadAtLeastAsync(unflushed + 1, cancellationToken);
            foreach (ReadOnlyMemory<byte> memory in read.Buffer)
            {
                counted.Write(memory.Span);
            }

            reader.AdvanceTo(read.Buffer.End);
            isEnd = read.IsCompleted;
        }

        if (!isEnd)
        {
            await reader.CopyToAsync(counted, cancellationToken);
        }

        return hash is null ? null : Convert.ToHexStringLower(hash.GetHashAndReset());
    }

    // A FIFO that nobody writes to waits here without a thread.
    private async Task<FilePipeReader> OpenAsync(string path, CancellationToken cancellationToken)
    {
        using CancellationTokenSource patience = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        patience.CancelAfter(s_fifoPatience);
        try
        {
            return await FilePipeReader.OpenAsync(path, Reading, patience.Token);
        }
        catch (OperationCanceledException) when (!cancellationToken.IsCancellationRequested)
        {
            throw new IOException($"'{path}' is a FIFO that nobody writes to, and is passed over.");
        }
    }
}
