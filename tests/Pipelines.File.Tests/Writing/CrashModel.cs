namespace FilePipelines.Tests;

/// <summary>
/// What a power failure may leave of a run: everything that a sync has covered, and of the rest any part. Every sector of 512 bytes has any
/// of the contents that were written to it since its file was last synced, or the one before; a file any of the lengths that it had, also
/// one ahead of its data, which is zeros then; every name any of the files that it meant since its folder was last synced. Each of these by
/// itself, so in any order.
/// </summary>
internal sealed class CrashModel
{
    private const int Sector = 512;

    private readonly Dictionary<int, FileState> _files = [];
    private readonly Dictionary<string, List<int?>> _names = [];

    /// <summary>What the caller was told so far, in order.</summary>
    internal List<long> Acknowledged { get; } = [];

    /// <summary>Goes on by one call.</summary>
    internal void Apply(FileCall call)
    {
        switch (call)
        {
            case FileCall.Make make:
                _files[make.File] = new FileState();
                if (make.Path is not null)
                {
                    Name(make.Path, make.File);
                }

                break;
            case FileCall.Write write:
                _files[write.File].Write(write.Offset, write.Bytes);
                break;
            case FileCall.Sync sync:
                _files[sync.File].Sync();
                break;
            case FileCall.Link link:
                Name(link.Path, link.File);
                break;
            case FileCall.LinkName link:
                Name(link.To, _names[link.From][^1]);
                break;
            case FileCall.Rename rename:
                Name(rename.To, _names[rename.From][^1]);
                Name(rename.From, null);
                break;
            case FileCall.Unlink unlink:
                Name(unlink.Path, null);
                break;
            case FileCall.SyncFolder:
                foreach (List<int?> versions in _names.Values)
                {
                    versions.RemoveRange(0, versions.Count - 1);
                }

                break;
            case FileCall.Acknowledge acknowledged:
                Acknowledged.Add(acknowledged.Value);
                break;
        }
    }

    /// <summary>The content of the file of that name after one power failure; <see langword="null"/> where there is none.</summary>
    /// <param name="path">The name.</param>
    /// <param name="choose">Gets a number of possibilities, from 1, and chooses one, from 0: the oldest is 0.</param>
    internal byte[]? Crash(string path, Func<int, int> choose)
        => _names.TryGetValue(path, out List<int?>? versions) && versions[choose(versions.Count)] is int file
            ? _files[file].Crash(choose) : null;

    private void Name(string path, int? file)
    {
        if (!_names.TryGetValue(path, out List<int?>? versions))
        {
            _names[path] = versions = [null];
        }

        versions.Add(file);
    }

    private sealed class FileState
    {
        // The contents of a sector, oldest first: the first is on the device.
        private readonly List<List<byte[]>> _sectors = [];
        private readonly HashSet<int> _unsynced = [];
        private List<long> _lengths = [0];

        internal void Write(long offset, ReadOnlySpan<byte> bytes)
        {
            _lengths.Add(Math.Max(_lengths[^1], offset + bytes.Length));
            while (!bytes.IsEmpty)
            {
                int index = (int)(offset / Sector);
                int start = (int)(offset % Sector);
                int length = Math.Min(Sector - start, bytes.Length);
                while (_sectors.Count <= index)
                {
                    _sectors.Add([new byte[Sector]]);
                }

                byte[] content = [.. _sectors[index][^1]];
                bytes[..length].CopyTo(content.AsSpan(start));
                _sectors[index].Add(content);
                _unsynced.Add(index);
                offset += length;
                bytes = bytes[length..];
            }
        }

        internal void Sync()
        {
            foreach (int index in _unsynced)
            {
                _sectors[index].RemoveRange(0, _sectors[index].Count - 1);
            }

            _unsynced.Clear();
            _lengths = [_lengths[^1]];
        }

        internal byte[] Crash(Func<int, int> choose)
        {
            byte[] content = new byte[_lengths[choose(_lengths.Count)]];
            for (int index = 0; index * Sector < content.Length; index++)
            {
                List<byte[]> versions = _sectors[index];
                int length = Math.Min(Sector, content.Length - (index * Sector));
                versions[versions.Count == 1 ? 0 : choose(versions.Count)].AsSpan(0, length).CopyTo(content.AsSpan(index * Sector));
            }

            return content;
        }
    }
}
