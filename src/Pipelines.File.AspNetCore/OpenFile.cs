using System.Text;
using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// An open file from which any number of requests send at once, each at its own offsets, and which <see cref="OpenFiles"/> may keep. It
/// is closed when the last reference is released.
/// </summary>
internal sealed class OpenFile : IWaitingCall
{
    private readonly byte[]? _path;
    private readonly FileVersion _version;

    // Interlocked: one for each user, and one for the cache while it keeps the file. Never increases from 0.
    private int _references = 1;

    // Environment.TickCount64, milliseconds. Any request writes it.
    private long _lastUsed;

    /// <param name="backend">
    /// The open file. Several readers that name offsets may share it: its state only chooses between calls that are both correct.
    /// </param>
    internal OpenFile(OpenedFile backend)
    {
        Backend = backend;
        Length = backend.Properties.KnownLength ?? 0;
    }

    /// <summary>Creates a file that can be kept.</summary>
    /// <param name="backend">The open file, whose full path is known.</param>
    /// <param name="key">The path as it was requested.</param>
    /// <param name="version">The version of the open file.</param>
    internal OpenFile(OpenedFile backend, string key, FileVersion version)
    {
        Backend = backend;
        Key = key;
        Length = version.Length;
        _path = Encoding.UTF8.GetBytes(backend.Path + '\0');
        _version = version;
        Use();
    }

    internal OpenedFile Backend { get; }

    /// <summary>The length, bytes; 0 if unknown: then the server sends the file, by reading to its end.</summary>
    internal long Length { get; }

    /// <summary>The key in <see cref="OpenFiles"/>; <see langword="null"/> if the file cannot be kept.</summary>
    internal string? Key { get; }

    internal long LastUsed => Volatile.Read(ref _lastUsed);

    /// <summary>Whether a request uses a kept file: a racy hint.</summary>
    internal bool IsInUse => Volatile.Read(ref _references) > 1;

    internal void Use() => Volatile.Write(ref _lastUsed, Environment.TickCount64);

    /// <summary>Whether the path still leads to this file, and the file has not changed since it was opened.</summary>
    internal bool IsCurrent() => FileVersion.TryGet(_path, out FileVersion version) && version == _version;

    /// <summary>Whether both are the same file in the same version.</summary>
    internal bool IsSameAs(OpenFile other) => _version == other._version;

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

    WaitKind IWaitingCall.WaitKind => WaitKind.Open;

    long IWaitingCall.QueuedAt { get; set; }

    internal void Release()
    {
        if (Interlocked.Decrement(ref _references) != 0)
        {
            return;
        }

        if (Key is null || FileVersion.HasName(Backend.Handle))
        {
            Backend.Release(closeHandle: true);
        }
        else
        {
            // Closing the last descriptor of a deleted file frees its blocks, which takes seconds for gigabytes. A waiting thread does it,
            // so that no request waits for the blocks of an old file.
            WaitingThreads.Shared.Queue(this);
        }
    }

    void IWaitingCall.Perform() => Backend.Release(closeHandle: true);
}
