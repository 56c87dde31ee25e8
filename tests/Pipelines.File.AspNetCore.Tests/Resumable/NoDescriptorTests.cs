namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>An upload that is opened while the process has hardly a descriptor left.</summary>
[Collection(nameof(AloneCollection))]
public sealed class NoDescriptorTests : UploadsInAFolder
{
    [Fact]
    public async Task Upload_ThatCannotBeReadBehindItsLock_GivesTheLockBack()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "setrlimit(2).");
        using UploadStore store = new(new ResumableUploadOptions { Folder = Folder }, new NoTimers());
        string id = UploadStore.NewId();
        (await store.CreateAsync(id, new UploadState { Length = 60 })).Dispose();
        using (FewDescriptors few = new(spare: 3))
        {
            // One is left, which the lock takes. (If others end meanwhile, the upload is opened.)
            FileStream last = File.OpenRead("/dev/null");
            few.TakeAll();
            await last.DisposeAsync();
            try
            {
                store.Open(id)?.Dispose();
            }
            catch (IOException)
            {
            }
        }

        using FileStream alone = new(store.LockPathOf(id), FileMode.OpenOrCreate, FileAccess.ReadWrite, FileShare.None);
    }

    [Fact]
    public async Task Upload_ThatCannotBeMadeBehindItsLock_LeavesNothing()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "setrlimit(2).");
        using UploadStore store = new(new ResumableUploadOptions { Folder = Folder }, new NoTimers());
        StoredUpload? made = null;
        using (FewDescriptors few = new(spare: 3))
        {
            // One is left, which the lock takes. (If others end meanwhile, the upload is made.)
            FileStream last = File.OpenRead("/dev/null");
            few.TakeAll();
            await last.DisposeAsync();
            try
            {
                made = await store.CreateAsync(UploadStore.NewId(), new UploadState { Length = 60 });
            }
            catch (IOException)
            {
            }
        }

        using (made)
        {
            made?.Remove();
        }

        Assert.Empty(Directory.EnumerateFileSystemEntries(Folder));
    }

    // The runtime cannot start a thread for a timer without a descriptor.
    private sealed class NoTimers : TimeProvider
    {
        public override ITimer CreateTimer(TimerCallback callback, object? state, TimeSpan dueTime, TimeSpan period)
            => base.CreateTimer(callback, state, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
    }
}
