using Microsoft.Win32.SafeHandles;

namespace FilePipelines.Devices.Tests;

/// <summary>
/// The same without the library: the system calls that a careful program makes for each kind of file, and what they answer. It shows what
/// is the kernel's.
/// </summary>
internal sealed class HandWriter(string folder, string name, Acknowledge acknowledge) : IFailingFile
{
    private const uint Mode = 0x1B6; // 0666, less the umask

    private readonly string _path = Path.Combine(folder, name);

    internal static string[] Kinds { get; } = ["growing", "preallocated", "appended", "dropped", "replaced"];

    public string Name => name;

    // A thread of its own: the pool has as many as there are processors, and all files are to be written at once.
    public Task RunAsync(Random random)
        => Task.Factory.StartNew(() => Run(random), CancellationToken.None, TaskCreationOptions.LongRunning, TaskScheduler.Default);

    public string? LossIn(string recovered, long promised)
        => FailingWriter.LossOf(Path.Combine(recovered, name), promised) is { } loss ? $"{name}: {loss}" : null;

    private void Run(Random random)
    {
        try
        {
            Write(random);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // It has failed, and writes nothing more.
        }
    }

    private void Write(Random random)
    {
        bool isReplaced = name == "replaced";
        bool isNameSynced = name == "appended" || isReplaced;
        string path = isReplaced ? _path + ".new" : _path;
        using SafeFileHandle file = Open(path, Libc.WriteOnly | Libc.Create | (name == "appended" ? Libc.Append : Libc.Truncate));
        if (name == "preallocated")
        {
            ThrowIfFailed(Libc.Allocate(file, Libc.KeepSize, 0, FailingWriter.Length));
        }

        for (int written = 0; written < FailingWriter.Length;)
        {
            int length = Math.Min(random.Next(1, FailingWriter.MaxRecord), FailingWriter.Length - written);
            RandomAccess.Write(file, FailingWriter.Content.AsSpan(written, length), written);
            written += length;
            if (random.Next(3) != 0 && written < FailingWriter.Length)
            {
                continue;
            }

            ThrowIfFailed(Libc.SyncData(file));
            if (!isNameSynced)
            {
                SyncFolder();
                isNameSynced = true;
            }

            if (!isReplaced)
            {
                acknowledge(name, written);
            }

            if (name == "dropped")
            {
                _ = Libc.Advise(file, 0, written, Libc.DontNeed);
            }
        }

        if (isReplaced)
        {
            ThrowIfFailed(Libc.Sync(file));
            File.Move(path, _path, overwrite: true);
            SyncFolder();
            acknowledge(name, FailingWriter.Length);
        }
    }

    private static SafeFileHandle Open(string path, int flags)
    {
        int descriptor = Libc.Open(path, flags, Mode);
        ThrowIfFailed(descriptor);
        return new SafeFileHandle(descriptor, ownsHandle: true);
    }

    private void SyncFolder()
    {
        using SafeFileHandle handle = Open(folder, 0);
        ThrowIfFailed(Libc.Sync(handle));
    }

    private static void ThrowIfFailed(int answer)
    {
        if (answer < 0)
        {
            throw Libc.Error("by hand");
        }
    }
}
