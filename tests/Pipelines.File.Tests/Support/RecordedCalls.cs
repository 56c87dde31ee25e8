using System.Runtime.InteropServices;

namespace FilePipelines.Tests;

/// <summary>
/// The system calls of the Unix back end, made for real, one at a time, and written down as far as a power failure may undo them. A file is
/// known by a number, from 0, in the order in which they were made or first seen.
/// </summary>
internal sealed unsafe class RecordedCalls : UnixCalls
{
    private readonly Lock _lock = new();
    private readonly List<FileCall> _calls = [];
    private readonly Dictionary<int, int> _files = [];
    private int _nextFile;

    /// <summary>Skips the test that makes one where there are no such calls.</summary>
    public RecordedCalls() => ChildProcess.SkipUnlessLinux();

    /// <summary>What the implementation is to have wrong.</summary>
    public PlantedMistake Mistake { get; init; }

    /// <summary>What O_TMPFILE answers instead of the kernel; 0 for the kernel's answer.</summary>
    public int NamelessError { get; init; }

    /// <summary>What renameat2 answers instead of the kernel; 0 for the kernel's answer.</summary>
    public int RenameNoReplaceError { get; init; }

    /// <summary>The errno of every unlink(2); 0: none.</summary>
    public int UnlinkError { get; init; }

    /// <summary>What fsync of a folder answers instead of the kernel; 0 for the kernel's answer.</summary>
    public int SyncFolderError { get; init; }

    /// <summary>What is told of the file system once a folder was synced; 0 for the kernel's answer.</summary>
    public int FailureAfterSyncFolder { get; init; }

    /// <summary>What happens before a folder is synced.</summary>
    public Action? BeforeSyncFolder { get; set; }

    /// <summary>What closing a second descriptor answers instead of the kernel; 0 for the kernel's answer.</summary>
    public int CloseError { get; init; }

    /// <summary>Whether the system has no descriptor for a duplicate.</summary>
    public bool HasNoDescriptor { get; init; }

    /// <summary>What fallocate answers instead of the kernel; 0 for the kernel's answer.</summary>
    public int AllocateError { get; init; }

    public int FoldersOpened { get; private set; }

    /// <summary>What fdatasync answers instead of the kernel, by the number of the call from 1; 0 for the kernel's answer.</summary>
    public Func<int, int>? SyncError { get; init; }

    /// <summary>Comes before the file takes its name.</summary>
    public Action? BeforeName { get; set; }

    public int Syncs { get; private set; }

    /// <summary>Everything so far, in order.</summary>
    public IReadOnlyList<FileCall> Calls
    {
        get
        {
            lock (_lock)
            {
                return [.. _calls];
            }
        }
    }

    /// <summary>The order of everything but writes, a word each.</summary>
    public string Order => string.Join(' ', Calls.Where(call => call is not FileCall.Write).Select(call => call.GetType().Name));

    /// <summary>Something that the caller was told, at this place of the order.</summary>
    public void Acknowledge(long value) => Record(new FileCall.Acknowledge(value));

    /// <summary>A file that was opened another way: what it is called, and that name and content are on the device.</summary>
    public int Know(SafeFileHandle handle, string path, byte[] content)
    {
        lock (_lock)
        {
            int file = _nextFile++;
            _files[(int)handle.DangerousGetHandle()] = file;
            _calls.Add(new FileCall.Make(file, path));
            _calls.Add(new FileCall.Write(file, 0, content));
            _calls.Add(new FileCall.Sync(file));
            _calls.Add(new FileCall.SyncFolder());
            return file;
        }
    }

    /// <summary>A file that was just made another way, and of which nothing is on the device.</summary>
    public void KnowNew(SafeFileHandle handle, string path) => Made((int)handle.DangerousGetHandle(), path);

    internal override long OpenFolderAt(int folder, byte[] path, int flags)
    {
        FoldersOpened++;
        return base.OpenFolderAt(folder, path, flags);
    }

    internal override bool TellsAtClose(in FileProperties properties)
        => CloseError != 0 || HasNoDescriptor || base.TellsAtClose(properties);

    internal override long CloseCopy(SafeFileHandle file) => CloseError != 0 ? -CloseError : base.CloseCopy(file);

    internal override int Duplicate(SafeFileHandle file) => HasNoDescriptor ? -1 : base.Duplicate(file);

    internal override long Allocate(SafeFileHandle file, long length)
        => AllocateError != 0 ? -AllocateError : base.Allocate(file, length);

    internal override long MakeNameless(in UnixName name, int flags, uint mode)
        => NamelessError != 0 ? -NamelessError : Made(base.MakeNameless(name, flags, mode), path: null);

    internal override long MakeNew(in UnixName name, int flags, uint mode) => Made(base.MakeNew(name, flags, mode), name.Path);

    internal override long Write(SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
    {
        lock (_lock)
        {
            long answer = base.Write(file, vectors, count, offset, flags);
            if (answer > 0)
            {
                byte[] bytes = new byte[answer];
                int length = 0;
                for (int i = 0; i < count && length < bytes.Length; i++)
                {
                    int part = (int)Math.Min(vectors[i].Length, bytes.Length - length);
                    Marshal.Copy(vectors[i].Base, bytes, length, part);
                    length += part;
                }

                _calls.Add(new FileCall.Write(NumberOf(file), offset, bytes));
            }

            return answer;
        }
    }

    internal override long TellFailure(SafeFileHandle file, long fileSystem)
        => FailureAfterSyncFolder != 0 && Calls.Any(static call => call is FileCall.SyncFolder) ? -FailureAfterSyncFolder
            : base.TellFailure(file, fileSystem);

    internal override long Sync(SafeFileHandle file)
    {
        lock (_lock)
        {
            Syncs++;
            if (SyncError?.Invoke(Syncs) is int error and not 0)
            {
                return -error;
            }

            if (Mistake == PlantedMistake.NoFileSync)
            {
                return 0;
            }

            // The model decides what is on the device: the real sync would only take time.
            _calls.Add(new FileCall.Sync(NumberOf(file)));
            return 0;
        }
    }

    internal override long LinkNameless(SafeFileHandle file, in UnixName name)
    {
        BeforeName?.Invoke();
        BeforeName = null;
        lock (_lock)
        {
            SyncFolderTooEarly();
            long answer = base.LinkNameless(file, name);
            if (answer == 0)
            {
                _calls.Add(new FileCall.Link(NumberOf(file), name.Path));
            }

            return answer;
        }
    }

    internal override long Link(in UnixName from, in UnixName to)
        => Recorded(base.Link(from, to), new FileCall.LinkName(from.Path, to.Path));

    internal override long Rename(in UnixName from, in UnixName to)
    {
        BeforeName?.Invoke();
        BeforeName = null;
        lock (_lock)
        {
            SyncFolderTooEarly();
            return Recorded(base.Rename(from, to), new FileCall.Rename(from.Path, to.Path));
        }
    }

    internal override long RenameNoReplace(in UnixName from, in UnixName to)
    {
        BeforeName?.Invoke();
        BeforeName = null;
        return RenameNoReplaceError != 0
            ? -RenameNoReplaceError
            : Recorded(base.RenameNoReplace(from, to), new FileCall.Rename(from.Path, to.Path));
    }

    internal override long Unlink(in UnixName name)
        => UnlinkError != 0 ? -UnlinkError : Recorded(base.Unlink(name), new FileCall.Unlink(name.Path));

    internal override long SyncFolder(SafeFileHandle folder)
    {
        BeforeSyncFolder?.Invoke();
        return SyncFolderError != 0 ? -SyncFolderError
            : Mistake is PlantedMistake.NoFolderSync or PlantedMistake.FolderSyncBeforeRename ? 0
            : Recorded(0, new FileCall.SyncFolder());
    }

    private void SyncFolderTooEarly()
    {
        if (Mistake == PlantedMistake.FolderSyncBeforeRename)
        {
            _calls.Add(new FileCall.SyncFolder());
        }
    }

    private long Made(long descriptor, string? path)
    {
        if (descriptor >= 0)
        {
            lock (_lock)
            {
                _files[(int)descriptor] = _nextFile;
                _calls.Add(new FileCall.Make(_nextFile++, path));
            }
        }

        return descriptor;
    }

    private int NumberOf(SafeFileHandle file) => _files[(int)file.DangerousGetHandle()];

    private void Record(FileCall call)
    {
        lock (_lock)
        {
            _calls.Add(call);
        }
    }

    private long Recorded(long answer, FileCall call)
    {
        if (answer == 0)
        {
            Record(call);
        }

        return answer;
    }
}
