using System.Buffers;
using System.Text;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace TailSample;

/// <summary>Standard output, which the files share line by line, and the checkpoint that says how far each of them is in it.</summary>
/// <remarks>
/// A program that is killed has written lines that its checkpoint does not know of, and would write them again. Where standard output is a file, they are there to be seen: what stands
/// behind the checkpoint's position is read at the start, and a line that comes again is left out. Where it is a pipe, nobody knows, and such lines come twice.
/// </remarks>
internal sealed class Output : IAsyncDisposable
{
    private static readonly TimeSpan s_saveInterval = TimeSpan.FromMilliseconds(200);

    private readonly FilePipeWriter _writer;
    private readonly Settings _settings;
    private readonly string? _identity;

    // Guards everything below.
    private readonly SemaphoreSlim _gate = new(1);
    private readonly Dictionary<(string Name, FileIdentity Identity), long> _positions = [];

    // Lines of the output that the checkpoint does not know of, with their line feed, and how often.
    private readonly Dictionary<string, int> _written = [];
    private readonly HashSet<(string Name, FileIdentity Identity)> _read = [];
    private bool _isSaved = true;

    private Output(Settings settings, Checkpoint checkpoint)
    {
        _settings = settings;
        using SafeFileHandle output = new(OperatingSystem.IsWindows() ? -1 : 1, ownsHandle: false);
        _identity = OperatingSystem.IsWindows() ? null : CutAndIdentify(output, checkpoint);
        foreach (CheckpointFile file in checkpoint.Files)
        {
            _positions[(file.Name, FileIdentity.Parse(file.Identity, null))] = file.Position;
        }

        foreach (CheckpointFile file in checkpoint.Read)
        {
            _read.Add((file.Name, FileIdentity.Parse(file.Identity, null)));
        }

        _writer = FilePipeWriter.OpenStandardOutput();
    }

    internal static async Task<Output> OpenAsync(Settings settings)
        => new(settings, settings.Checkpoint is null ? Checkpoint.Empty : await Checkpoint.LoadAsync(Path.GetFullPath(settings.Checkpoint)));

    /// <summary>The files that are known by that name, and how far they were read.</summary>
    internal async Task<IReadOnlyList<(FileIdentity Identity, long Position)>> KnownAsync(string name)
    {
        await _gate.WaitAsync();
        try
        {
            return [.. _positions.Where(known => known.Key.Name == name).Select(static known => (known.Key.Identity, known.Value)).OrderBy(static known => known.Identity.Created)];
        }
        finally
        {
            _gate.Release();
        }
    }

    /// <summary>Writes lines of a file. Each ends with a line feed, but for the last of a file, which gets one.</summary>
    /// <param name="name">The name that the file is followed by.</param>
    /// <param name="identity">Which file it is.</param>
    /// <param name="prefix">What each line begins with.</param>
    /// <param name="lines">The lines.</param>
    /// <param name="position">Where the file was read to with them, bytes.</param>
    internal async Task WriteAsync(string name, FileIdentity identity, byte[] prefix, ReadOnlySequence<byte> lines, long position)
    {
        await _gate.WaitAsync();
        try
        {
            while (!lines.IsEmpty)
            {
                SequencePosition end = lines.PositionOf((byte)'\n') is { } lineFeed ? lines.GetPosition(1, lineFeed) : lines.End;
                Write(prefix, lines.Slice(0, end));
                lines = lines.Slice(end);
                if (_writer.UnflushedBytes > 64 * 1024)
                {
                    await _writer.FlushAsync();
                }
            }

            await _writer.FlushAsync();
            _positions[(name, identity)] = position;
            _isSaved = false;
        }
        finally
        {
            _gate.Release();
        }
    }

    /// <summary>Another file has the name now, and the one before was read to its end.</summary>
    internal async Task GoOnAsync(string name, FileIdentity identity, IEnumerable<FileIdentity> read)
    {
        await _gate.WaitAsync();
        try
        {
            _isSaved &= !_positions.TryAdd((name, identity), 0);
            foreach (FileIdentity each in read)
            {
                _isSaved &= !_positions.Remove((name, each));
                _read.Add((name, each));
            }
        }
        finally
        {
            _gate.Release();
        }
    }

    /// <summary>Whether the file is read, or was, by another name: a pattern may match what a log is renamed to.</summary>
    internal async Task<bool> IsOfAnotherNameAsync(string name, FileIdentity identity)
    {
        await _gate.WaitAsync();
        try
        {
            return _positions.Keys.Concat(_read).Any(known => known.Identity == identity && known.Name != name);
        }
        finally
        {
            _gate.Release();
        }
    }

    /// <summary>Saves the checkpoint from time to time, until that is canceled.</summary>
    internal async Task SaveAsync(CancellationToken cancellationToken)
    {
        while (true)
        {
            await Task.Delay(s_saveInterval, cancellationToken);
            await SaveAsync();
        }
    }

    public async ValueTask DisposeAsync()
    {
        await SaveAsync();
        await _writer.CompleteAsync();
    }

    private void Write(byte[] prefix, ReadOnlySequence<byte> line)
    {
        int length = (int)line.Length;
        Span<byte> memory = _writer.GetSpan(prefix.Length + length + 1);
        prefix.CopyTo(memory);
        line.CopyTo(memory[prefix.Length..]);
        length += prefix.Length;
        if (memory[length - 1] != '\n')
        {
            memory[length++] = (byte)'\n';
        }

        if (_written.Count == 0 || !TryLeaveOut(Encoding.Latin1.GetString(memory[..length])))
        {
            _writer.Advance(length);
        }
    }

    private bool TryLeaveOut(string line)
    {
        if (!_written.TryGetValue(line, out int count))
        {
            return false;
        }

        if (count == 1)
        {
            _written.Remove(line);
        }
        else
        {
            _written[line] = count - 1;
        }

        return true;
    }

    private async Task SaveAsync()
    {
        if (_settings.Checkpoint is null)
        {
            return;
        }

        await _gate.WaitAsync();
        try
        {
            if (_isSaved)
            {
                return;
            }

            // The lines first: what the checkpoint says is in the output is there.
            await _writer.FlushAsync(FlushGuarantee.Written);
            Checkpoint checkpoint = new(
                [.. _positions.Select(static file => new CheckpointFile(file.Key.Name, file.Key.Identity.ToString(), file.Value))],
                [.. _read.Where(static file => RotatedFiles.Find(file.Name, file.Identity) is not null).Select(static file => new CheckpointFile(file.Name, file.Identity.ToString(), 0))],
                _identity,
                _identity is null ? 0 : _writer.Position);
            await checkpoint.SaveAsync(Path.GetFullPath(_settings.Checkpoint));
            _isSaved = true;
        }
        finally
        {
            _gate.Release();
        }
    }

    /// <summary>Reads what the output holds behind the checkpoint, and takes half a line away that was being written. <see langword="null"/>: it is no file.</summary>
    private string? CutAndIdentify(SafeFileHandle output, Checkpoint checkpoint)
    {
        if (!FileIdentity.TryGet("/dev/stdout", out FileIdentity identity) || !File.Exists("/proc/self/fd/1") || _settings.Checkpoint is null)
        {
            return null;
        }

        long length;
        try
        {
            length = RandomAccess.GetLength(output);
        }
        catch (NotSupportedException)
        {
            return null;
        }

        if (checkpoint.Output == identity.ToString() && checkpoint.OutputPosition < length)
        {
            // It may be open for writing only.
            using FileStream written = new("/dev/stdout", FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete);
            byte[] bytes = new byte[length - checkpoint.OutputPosition];
            written.Position = checkpoint.OutputPosition;
            written.ReadExactly(bytes);
            int start = 0;
            for (int lineFeed; (lineFeed = bytes.AsSpan(start).IndexOf((byte)'\n')) >= 0; start += lineFeed + 1)
            {
                string line = Encoding.Latin1.GetString(bytes.AsSpan(start, lineFeed + 1));
                _written[line] = _written.GetValueOrDefault(line) + 1;
            }

            RandomAccess.SetLength(output, checkpoint.OutputPosition + start);
        }

        return identity.ToString();
    }
}
