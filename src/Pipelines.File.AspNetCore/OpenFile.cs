using System.Text;
using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// A file that any number of requests send from at once, each by offsets of its own, and that <see cref="OpenFiles"/> may keep. It is
/// closed when the last of them has released it.
/// </summary>
internal sealed class OpenFile : IWaitingCall
{
    private readonly byte[]? _path;
    private readonly FileVersion _version;

    // Interlocked: who uses it, and the cache while it keeps it. What has come to 0 stays there.
    private int _references = 1;

    // Milliseconds of Environment.TickCount64; written by any request.
    private long _lastUsed;

    /// <param name="backend">
    /// The open file. Its state may be shared by several readers that name offsets: it only chooses between calls that are right both.
    /// </param>
    internal OpenFile(OpenedFile backend)
    {
        Backend = backend;
        Length = backend.Properties.KnownLength ?? 0;
    }

    /// <summary>A file that can be kept.</summary>
    /// <param name="backend">The open file, whose full path is known.</param>
    /// <param name="key">The path as it was asked for.</param>
    /// <param name="version">What was opened.</param>
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

    /// <summary>Bytes; 0 where nobody knows: the server reads until the end comes.</summary>
    internal long Length { get; }

    /// <summary>What it is kept under; <see langword="null"/> for one that is not.</summary>
    internal string? Key { get; }

    internal long LastUsed => Volatile.Read(ref _lastUsed);

    /// <summary>Whether anybody else than the cache has it.</summary>
    internal bool IsInUse => Volatile.Read(ref _references) > 1;

    internal void Use() => Volatile.Write(ref _lastUsed, Environment.TickCount64);

    /// <summary>Whether its path means this file still, and the file is as it was when it was opened.</summary>
    internal bool IsCurrent() => FileVersion.TryGet(_path, out FileVersion version) && version == _version;

    /// <summary>Whether both are the same file in the same state.</summary>
    internal bool IsSameAs(OpenFile other) => _version == other._version;

    /// <summary><see langword="false"/>: it is closed, or about to be.</summary>
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
            // The last descriptor of a file without a name frees its blocks, which takes seconds for gigabytes. No request is to wait for
            // what another file had.
            WaitingThreads.Shared.Queue(this);
        }
    }

    void IWaitingCall.Perform() => Backend.Release(closeHandle: true);
}
