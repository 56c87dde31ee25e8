using Microsoft.AspNetCore.Http;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The turn of one upload, among those of this process that are about to take the same name. The name is that of a file in a folder, by
/// whatever path the folder was reached.
/// </summary>
internal sealed class NameLock : IDisposable
{
    // Guarded by itself: the locks that somebody holds or waits for.
    private static readonly Dictionary<(FileIdentity Folder, string Name), NameLock> s_locks = [];

    private readonly (FileIdentity Folder, string Name) _key;
    private readonly SemaphoreSlim _turn = new(1);

    // Guarded by s_locks.
    private int _users;

    private NameLock((FileIdentity Folder, string Name) key) => _key = key;

    /// <summary>Waits for the turn, which ends when the result is disposed of.</summary>
    /// <exception cref="BadHttpRequestException">So many wait already (503).</exception>
    internal static async ValueTask<NameLock> TakeAsync(string path, int maxWaiting, CancellationToken cancellationToken)
    {
        string full = Path.GetFullPath(path);

        // If the system does not tell what the folder is, its path is the name.
        bool isKnown = FileIdentity.TryGet(Path.GetDirectoryName(full)!, out FileIdentity folder);

        // A file system may ignore case.
        (FileIdentity Folder, string Name) key = (folder, (isKnown ? Path.GetFileName(full) : full).ToUpperInvariant());
        NameLock? taken;
        lock (s_locks)
        {
            if (!s_locks.TryGetValue(key, out taken))
            {
                s_locks.Add(key, taken = new NameLock(key));
            }

            if (taken._users > maxWaiting)
            {
                throw new BadHttpRequestException("Too many uploads wait for this name.", StatusCodes.Status503ServiceUnavailable);
            }

            taken._users++;
        }

        try
        {
            await taken._turn.WaitAsync(cancellationToken).ConfigureAwait(false);
            return taken;
        }
        catch
        {
            taken.Leave();
            throw;
        }
    }

    public void Dispose()
    {
        _turn.Release();
        Leave();
    }

    private void Leave()
    {
        lock (s_locks)
        {
            if (--_users == 0)
            {
                s_locks.Remove(_key);
            }
        }
    }
}
