using System.Buffers;
using System.IO.Pipelines;
using System.Text;
using Pipelines.File;

namespace TailSample;

/// <summary>One name: the file that has it, and after a rotation the next one, until it is canceled. It waits without a thread.</summary>
internal sealed class TailedFile(string name, string shownName, bool isThereAtStart, Settings settings, Output output)
{
    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(50);

    private readonly byte[] _prefix = settings.HasPrefix ? Encoding.UTF8.GetBytes(shownName + ": ") : [];

    // The file that was read last, and when it was last written to.
    private FileIdentity _last;
    private DateTime _lastWritten = DateTime.MaxValue;

    // Files that were read to their end since the output was told.
    private readonly List<FileIdentity> _read = [];

    internal async Task RunAsync(CancellationToken cancellationToken)
    {
        long? offset = await GoOnAsync(cancellationToken);
        bool hasSaidThatItWaits = false;
        while (true)
        {
            FilePipeReader? reader = await TryOpenAsync(offset, cancellationToken);
            if (reader is null)
            {
                if (!hasSaidThatItWaits)
                {
                    await Console.Error.WriteLineAsync($"Tail: waiting for '{shownName}'");
                    hasSaidThatItWaits = true;
                }

                offset ??= 0;
                await Task.Delay(s_pause, cancellationToken);
                continue;
            }

            hasSaidThatItWaits = false;
            await using (reader)
            {
                FileIdentity identity = reader.Identity;
                if (identity != _last)
                {
                    if (_last != default)
                    {
                        _read.Add(_last);
                        foreach (string missed in RotatedFiles.Between(name, _last, _lastWritten, identity))
                        {
                            await ReadRotatedAsync(missed, 0, cancellationToken);
                        }
                    }

                    await output.GoOnAsync(name, identity, _read);
                    _read.Clear();
                    _last = identity;
                }

                await ReadAsync(reader, identity, cancellationToken);
            }

            _lastWritten = DateTime.UtcNow;
            offset = 0;
        }
    }

    /// <summary>Reads what came to the files that the checkpoint knows, and were rotated meanwhile. Where to go on in the file that has the name; <see langword="null"/>: it is a new one.</summary>
    private async Task<long?> GoOnAsync(CancellationToken cancellationToken)
    {
        FileIdentity current = FileIdentity.TryGet(name, out FileIdentity found) ? found : default;
        foreach ((FileIdentity identity, long position) in await output.KnownAsync(name))
        {
            _last = identity;
            if (identity == current)
            {
                await output.GoOnAsync(name, identity, _read);
                _read.Clear();
                return position;
            }

            if (RotatedFiles.Find(name, identity) is { } rotated)
            {
                await ReadRotatedAsync(rotated, position, cancellationToken);
                _lastWritten = File.GetLastWriteTimeUtc(rotated);
            }
            else
            {
                _read.Add(identity);
                await Console.Error.WriteLineAsync($"Tail: what was '{shownName}' is gone, with what came behind byte {position:N0}, if anything");
            }
        }

        // With nothing known, the last lines of a file that is there at the start; a file that comes later is read from its beginning.
        return _last != default || !isThereAtStart ? 0 : null;
    }

    private async Task ReadRotatedAsync(string path, long offset, CancellationToken cancellationToken)
    {
        await using FilePipeReader reader = FilePipeReader.Create(path, new FilePipeReaderOptions { Offset = offset, Share = FileShare.ReadWrite | FileShare.Delete });
        await ReadAsync(reader, reader.Identity, cancellationToken);
        _read.Add(reader.Identity);
    }

    private async Task<FilePipeReader?> TryOpenAsync(long? offset, CancellationToken cancellationToken)
    {
        try
        {
            FilePipeReaderOptions options = new() { Follow = true, Offset = offset ?? LastLines() };
            FilePipeReader reader = await FilePipeReader.OpenAsync(name, options, cancellationToken);
            if (options.Offset > 0 && ((offset is not null && reader.Identity != _last) || reader.Length < options.Offset))
            {
                // Another file by now, or it was cut.
                await reader.CompleteAsync();
                reader = await FilePipeReader.OpenAsync(name, new FilePipeReaderOptions { Follow = true }, cancellationToken);
            }

            if (await output.IsOfAnotherNameAsync(name, reader.Identity))
            {
                await reader.CompleteAsync();
                return null;
            }

            return reader;
        }
        catch (Exception e) when (e is FileNotFoundException or DirectoryNotFoundException || (e is UnauthorizedAccessException && OperatingSystem.IsWindows()))
        {
            // Windows denies the access to a file whose deletion is pending.
            return null;
        }
    }

    /// <summary>Gives the lines of the file to the output as they come, until it ends: what is left then without a line end is a line.</summary>
    private async Task ReadAsync(FilePipeReader reader, FileIdentity identity, CancellationToken cancellationToken)
    {
        bool isEnd;
        do
        {
            ReadResult result = await reader.ReadAsync(cancellationToken);
            isEnd = result.IsCompleted;
            ReadOnlySequence<byte> buffer = result.Buffer;
            SequencePosition end = isEnd ? buffer.End : BehindLastLine(buffer);
            ReadOnlySequence<byte> lines = buffer.Slice(0, end);
            if (!lines.IsEmpty)
            {
                await output.WriteAsync(name, identity, _prefix, lines, reader.Position + lines.Length);
            }

            reader.AdvanceTo(end, buffer.End);
        }
        while (!isEnd);
    }

    private static SequencePosition BehindLastLine(ReadOnlySequence<byte> buffer)
    {
        SequencePosition end = buffer.Start;
        long before = 0;
        foreach (ReadOnlyMemory<byte> piece in buffer)
        {
            int lineFeed = piece.Span.LastIndexOf((byte)'\n');
            if (lineFeed >= 0)
            {
                end = buffer.GetPosition(before + lineFeed + 1);
            }

            before += piece.Length;
        }

        return end;
    }

    /// <summary>Where the last lines of the file begin that are asked for, bytes.</summary>
    private long LastLines()
    {
        if (settings.Lines is not long wanted)
        {
            return 0;
        }

        using FileStream file = new(name, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete, bufferSize: 0);
        byte[] block = new byte[64 * 1024];
        long end = file.Length;
        long left = end;
        while (left > 0)
        {
            int length = (int)Math.Min(block.Length, left);
            left -= length;
            file.Position = left;
            length = file.ReadAtLeast(block.AsSpan(0, length), length, throwOnEndOfStream: false);
            for (int i = length - 1; i >= 0; i--)
            {
                // The line feed at the very end ends the last line.
                if (block[i] == '\n' && left + i != end - 1 && --wanted <= 0)
                {
                    return wanted < 0 ? end : left + i + 1;
                }
            }
        }

        return wanted == 0 ? end : 0;
    }
}
