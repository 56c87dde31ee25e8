namespace Pipelines.File.AspNetCore;

/// <summary>
/// An open file that any number of requests send at once, and that <see cref="OpenFiles"/> may keep. It is closed when the last reference
/// is released.
/// </summary>
/// <param name="file">The open file.</param>
/// <param name="key">The key in <see cref="OpenFiles"/>; <see langword="null"/> if the file cannot be kept.</param>
internal sealed class OpenFile(SharedFile file, string? key)
{
    // Interlocked: one for each user, and one for the cache while it keeps the file. Never increases from 0.
    private int _references = 1;

    // Environment.TickCount64, milliseconds. Any request writes it.
    private long _lastUsed = Environment.TickCount64;

    internal SharedFile Shared => file;

    internal string? Key => key;

    internal long LastUsed => Volatile.Read(ref _lastUsed);

    /// <summary>Whether a request uses a kept file: a racy hint.</summary>
    internal bool IsInUse => Volatile.Read(ref _references) > 1;

    /// <summary>
    /// Adds a reference if the file is open, and the path still leads to it, unchanged (one statx(2)). The caller then releases it.
    /// </summary>
    internal bool TryUse()
    {
        if (!TryAddReference())
        {
            return false;
        }

        if (file.IsCurrent())
        {
            Use();
            return true;
        }

        Release();
        return false;
    }

    internal void Use() => Volatile.Write(ref _lastUsed, Environment.TickCount64);

    /// <summary>Adds a reference. Returns <see langword="false"/> if the file is closed, or about to be.</summary>
    internal bool TryAddReference()
    {
        for (int references = Volatile.Read(ref _references); references > 0;)
        {
            int before = Interlocked.CompareExchange(ref _references, references + 1, references);
            if (before == references)
            {
                return true;
            }

            references = before;
        }

        return false;
    }

    internal void Release()
    {
        if (Interlocked.Decrement(ref _references) == 0)
        {
            file.Dispose();
        }
    }
}
