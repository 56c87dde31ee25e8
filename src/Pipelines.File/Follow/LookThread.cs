namespace Pipelines.File.Follow;

/// <summary>
/// Looks at the followed files of one volume, one after the other. A look may wait for a server that does not answer: it holds up the files of its volume, and this thread, and nothing else.
/// </summary>
internal sealed class LookThread
{
    /// <summary>At most the 15 characters that Linux keeps.</summary>
    internal const string ThreadName = "File looks";

    /// <summary>How long the thread outlives its last look, milliseconds.</summary>
    private const int IdleMilliseconds = 5000;
    private const int StackBytes = 256 * 1024;

    // By volume. Taken before the lock of a queue.
    private static readonly Dictionary<ulong, LookThread> s_threads = [];

    // Guards itself.
    private readonly Queue<FollowedFile> _files = new();
    private readonly ulong _volume;

    private LookThread(ulong volume) => _volume = volume;

    /// <summary>Has <see cref="FollowedFile.Look"/> called.</summary>
    /// <exception cref="OutOfMemoryException">The system has no thread.</exception>
    /// <exception cref="ThreadStartException">The same.</exception>
    internal static void Queue(FollowedFile file)
    {
        ulong volume = file.Identity.Volume;
        lock (s_threads)
        {
            if (!s_threads.TryGetValue(volume, out LookThread? thread))
            {
                thread = new LookThread(volume);
                new Thread(static thread => ((LookThread)thread!).Run(), StackBytes) { IsBackground = true, Name = ThreadName }.UnsafeStart(thread);
                s_threads.Add(volume, thread);
            }

            lock (thread._files)
            {
                thread._files.Enqueue(file);
                Monitor.Pulse(thread._files);
            }
        }
    }

    private void Run()
    {
        while (true)
        {
            FollowedFile? file;
            lock (_files)
            {
                if (_files.Count == 0)
                {
                    Monitor.Wait(_files, IdleMilliseconds);
                }

                _ = _files.TryDequeue(out file);
            }

            if (file is not null)
            {
                file.Look();
                continue;
            }

            lock (s_threads)
            {
                if (_files.Count == 0)
                {
                    s_threads.Remove(_volume);
                    return;
                }
            }
        }
    }
}
