using System.Diagnostics;

namespace FilePipelines.Devices.Tests;

/// <summary>
/// What a disk may have after a power failure: all that was written before the last flush, and of what was written later any sectors in
/// any combination. Moments of one recording, in their order, each on a copy of the disk that is mounted, so that the file system recovers.
/// </summary>
internal sealed class PowerCut : IDisposable
{
    internal const int PartLength = 64 * 1024;

    private const int Sector = 512;
    private const int Ways = 8;

    private readonly FileSystemKind _kind;
    private readonly DeviceEvent[] _events;
    private readonly TempFolder _folder = new();
    private readonly DiskImage _copy;
    private readonly LoopDevice _device;
    private readonly string _path;

    // One for all mounts, because starting it takes longer than mounting.
    private readonly Process _guard;

    // What is on the device for certain: everything before that event.
    private readonly SortedDictionary<long, byte[]> _durable;
    private readonly Dictionary<string, long> _promises = [];
    private int _flushed;
    private int _promised;

    internal PowerCut(FileSystemKind kind, SortedDictionary<long, byte[]> before, DeviceEvent[] events)
    {
        _kind = kind;
        _events = events;
        _durable = new(before.ToDictionary(static part => part.Key, static part => (byte[])part.Value.Clone()));
        _copy = new DiskImage(kind.Length);
        _path = Directory.CreateDirectory(_folder.File("cut")).FullName;
        try
        {
            _device = LoopDevice.Attach(_copy.Handle, isDirect: false);
            _guard = MountedFolder.Guard(_device, _path);
        }
        catch
        {
            _copy.Dispose();
            throw;
        }
    }

    public void Dispose()
    {
        _device.Dispose();
        MountedFolder.Release(_guard);
        _copy.Dispose();
        _folder.Dispose();
    }

    /// <summary>Cuts the power before that event, which is none before the last one.</summary>
    /// <param name="moment">The number of the event.</param>
    /// <param name="random">Chooses the sectors.</param>
    /// <param name="checkAsync">Looks for what was promised until then, in the folder where the recovered file system is mounted.</param>
    /// <returns>How many promises were looked for.</returns>
    internal async Task<int> CutAsync(int moment, Random random, Func<string, IReadOnlyDictionary<string, long>, Task> checkAsync)
    {
        AdvanceTo(moment);
        _copy.Clear();
        foreach ((long offset, byte[] part) in _durable)
        {
            RandomAccess.Write(_copy.Handle, part, offset);
        }

        WriteSome(_events.AsSpan(_flushed, moment - _flushed), random);
        using (MountedFolder.Mount(_device, _kind, _path, _guard))
        {
            await checkAsync(_path, _promises);
        }

        return _promises.Count;
    }

    private void AdvanceTo(int moment)
    {
        int flushed = moment;
        while (flushed > _flushed && !_events[flushed - 1].IsFlush)
        {
            flushed--;
        }

        for (; _flushed < flushed; _flushed++)
        {
            if (_events[_flushed].Written is { } bytes)
            {
                Apply(_events[_flushed].Offset, bytes);
            }
        }

        for (; _promised < moment; _promised++)
        {
            if (_events[_promised].Promise is { } promise)
            {
                _promises[promise.Subject] = promise.Value;
            }
        }
    }

    private void Apply(long offset, ReadOnlySpan<byte> bytes)
    {
        while (bytes.Length > 0)
        {
            int within = (int)(offset % PartLength);
            int length = Math.Min(bytes.Length, PartLength - within);
            if (!_durable.TryGetValue(offset - within, out byte[]? part))
            {
                _durable[offset - within] = part = new byte[PartLength];
            }

            bytes[..length].CopyTo(part.AsSpan(within));
            bytes = bytes[length..];
            offset += length;
        }
    }

    // ext4 and Btrfs look at the checksum of their superblocks, two sectors and eight, before they do anything else: a torn one needs
    // fsck(8) or "btrfs rescue", or a device that writes 4 KiB at once. That of Btrfs begins at 64 KiB.
    private static bool IsSuperblock(in DeviceEvent step) => step.Offset is < 4096 or (>= 65536 and < 65536 + 4096);

    /// <summary>None of the writes, all, all but one, some, the first ones and a torn one; or sectors: few, half, most of them.</summary>
    private void WriteSome(ReadOnlySpan<DeviceEvent> steps, Random random)
    {
        int way = random.Next(Ways);
        int chosen = random.Next(steps.Length + 1);
        for (int i = 0; i < steps.Length; i++)
        {
            if (steps[i].Written is not { } bytes)
            {
                continue;
            }

            int length = way switch
            {
                0 => 0,
                1 => bytes.Length,
                2 => i == chosen ? 0 : bytes.Length,
                3 => random.Next(2) * bytes.Length,
                4 when i != chosen => i < chosen ? bytes.Length : 0,
                4 when IsSuperblock(steps[i]) => 0,
                4 => random.Next((bytes.Length / Sector) + 1) * Sector,
                _ => -1,
            };
            if (length >= 0)
            {
                RandomAccess.Write(_copy.Handle, bytes.AsSpan(0, length), steps[i].Offset);
                continue;
            }

            double share = way switch { 5 => 0.02, 6 => 0.5, _ => 0.98 };
            if (IsSuperblock(steps[i]))
            {
                length = random.NextDouble() < share ? bytes.Length : 0;
                RandomAccess.Write(_copy.Handle, bytes.AsSpan(0, length), steps[i].Offset);
                continue;
            }

            for (int sector = 0; sector < bytes.Length; sector += Sector)
            {
                if (random.NextDouble() < share)
                {
                    ReadOnlySpan<byte> part = bytes.AsSpan(sector, Math.Min(Sector, bytes.Length - sector));
                    RandomAccess.Write(_copy.Handle, part, steps[i].Offset + sector);
                }
            }
        }
    }
}
