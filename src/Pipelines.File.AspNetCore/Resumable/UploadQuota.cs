namespace Pipelines.File.AspNetCore;

/// <summary>
/// What the uploads that are not finished take, together and of each owner: their number, and the bytes that they have announced. It is
/// counted as uploads come and go, and every look through the folder corrects what other processes have changed. Any thread may call its
/// members.
/// </summary>
internal sealed class UploadQuota(ResumableUploadOptions options)
{
    /// <summary>
    /// What an upload takes at least, bytes: the blocks of its files. Where no number of uploads is set, there may be as many as fit so
    /// into the bytes that all may take.
    /// </summary>
    private const int LeastSize = 4096;

    private const int DefaultMaxUploads = 10_000;
    private const int LeastUploads = 16;

    private readonly int _maxUploads = options.MaxUploads ?? NumberOf(options.MaxTotalLength);
    private readonly int _maxPerOwner = options.MaxUploadsPerOwner ?? NumberOf(options.MaxTotalLengthPerOwner);

    // Guards all below.
    private readonly Lock _lock = new();
    private readonly Dictionary<string, Counted> _uploads = new(StringComparer.Ordinal);
    private readonly Dictionary<string, Sum> _owners = new(StringComparer.Ordinal);

    // Uploads that have gone since a look began, which may have read their state before.
    private readonly HashSet<string> _goneSinceLook = new(StringComparer.Ordinal);
    private Sum _all;
    private int _looks;
    private bool _isLooking;

    /// <summary>Counts a new upload, which a request holds; false if there is no room.</summary>
    internal bool TryAdd(string id, string? owner, long bytes)
    {
        lock (_lock)
        {
            Sum own = SumOf(owner);
            if (_all.Count >= _maxUploads || (owner is not null && own.Count >= _maxPerOwner) || !HasRoom(owner, bytes))
            {
                return false;
            }

            Set(id, owner, bytes).IsHeld = true;
            return true;
        }
    }

    /// <summary>Counts more, or fewer, bytes of an upload; fewer always have room.</summary>
    internal bool TryGrow(string id, long bytes)
    {
        lock (_lock)
        {
            Counted upload = _uploads.TryGetValue(id, out Counted? known) ? known : Set(id, null, 0);
            if (bytes > 0 && !HasRoom(upload.Owner, bytes))
            {
                return false;
            }

            Set(id, upload.Owner, upload.Bytes + bytes).IsHeld = true;
            return true;
        }
    }

    /// <summary>From here on an upload takes what the request that holds it says, not what its state tells.</summary>
    internal void Hold(string id, string? owner, long bytes)
    {
        lock (_lock)
        {
            Set(id, owner, bytes).IsHeld = true;
        }
    }

    /// <summary>The request has ended that held an upload. <see langword="null"/>: it takes nothing any more.</summary>
    internal void Release(string id, long? bytes)
    {
        lock (_lock)
        {
            if (bytes is { } left && _uploads.TryGetValue(id, out Counted? upload))
            {
                Set(id, upload.Owner, left).IsHeld = false;
            }
            else
            {
                Remove(id);
                if (_isLooking)
                {
                    _goneSinceLook.Add(id);
                }
            }
        }
    }

    /// <summary>Whether a request of this process holds it.</summary>
    internal bool IsHeld(string id)
    {
        lock (_lock)
        {
            return _uploads.TryGetValue(id, out Counted? upload) && upload.IsHeld;
        }
    }

    internal void BeginLook()
    {
        lock (_lock)
        {
            _looks++;
            _isLooking = true;
            _goneSinceLook.Clear();
        }
    }

    /// <summary>A look has found the state of an upload, or a state that cannot be read now, which changes nothing.</summary>
    internal void Saw(string id, UploadState? state)
    {
        lock (_lock)
        {
            if (_uploads.TryGetValue(id, out Counted? known))
            {
                known.Look = _looks;
            }

            if (state is not null && known?.IsHeld != true && !_goneSinceLook.Contains(id))
            {
                if (UploadStore.Takes(state))
                {
                    Set(id, state.Owner, UploadStore.CountOf(state));
                }
                else
                {
                    Remove(id);
                }
            }
        }
    }

    /// <summary>What the whole look has not found is gone: another process has removed it.</summary>
    internal void EndLook()
    {
        lock (_lock)
        {
            _isLooking = false;
            foreach (string id in _uploads.Where(pair => pair.Value.Look < _looks && !pair.Value.IsHeld).Select(pair => pair.Key).ToArray())
            {
                Remove(id);
            }
        }
    }

    private static int NumberOf(long? bytes)
        => bytes is { } most ? (int)Math.Min(DefaultMaxUploads, LeastUploads + (most / LeastSize)) : DefaultMaxUploads;

    private bool HasRoom(string? owner, long bytes)
        => Fits(bytes, _all, options.MaxTotalLength) && (owner is null || Fits(bytes, SumOf(owner), options.MaxTotalLengthPerOwner));

    private static bool Fits(long bytes, Sum sum, long? most) => most is null || (bytes <= most && sum.Bytes <= most - bytes);

    private Sum SumOf(string? owner) => owner is null ? default : _owners.GetValueOrDefault(owner);

    // An upload that is made during a look, which may not find it, counts as found.
    private Counted Set(string id, string? owner, long bytes)
    {
        if (_uploads.TryGetValue(id, out Counted? upload))
        {
            Add(upload.Owner, -1, -upload.Bytes);
        }
        else
        {
            _uploads.Add(id, upload = new Counted());
        }

        upload.Owner = owner;
        upload.Bytes = bytes;
        upload.Look = _looks;
        Add(owner, 1, bytes);
        return upload;
    }

    private void Remove(string id)
    {
        if (_uploads.Remove(id, out Counted? upload))
        {
            Add(upload.Owner, -1, -upload.Bytes);
        }
    }

    private void Add(string? owner, int count, long bytes)
    {
        _all = new Sum(_all.Count + count, _all.Bytes + bytes);
        if (owner is not null)
        {
            Sum own = SumOf(owner);
            own = new Sum(own.Count + count, own.Bytes + bytes);
            if (own.Count == 0)
            {
                _owners.Remove(owner);
            }
            else
            {
                _owners[owner] = own;
            }
        }
    }

    private sealed class Counted
    {
        internal string? Owner { get; set; }

        internal long Bytes { get; set; }

        internal bool IsHeld { get; set; }

        // The last look that has found it.
        internal int Look { get; set; }
    }

    // Without a limit, clients may have announced more than fits into a long.
    private readonly record struct Sum(int Count, Int128 Bytes);
}
