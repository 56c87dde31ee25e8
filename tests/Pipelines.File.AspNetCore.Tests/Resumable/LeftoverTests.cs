using System.Runtime.InteropServices;
using System.Text.Json;

namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>Uploads that a killed process has left between two steps, and what cannot be opened.</summary>
public sealed partial class LeftoverTests : UploadsInAFolder
{
    private const uint Nobody = 65534;
    private const UnixFileMode ReadOnly = UnixFileMode.UserRead | UnixFileMode.GroupRead | UnixFileMode.OtherRead;

    private readonly ManualTime _time = new();

    [Fact]
    public async Task FinalUpload_ThatNobodyHolds_IsRemovedByTheNextLook_AndAnotherStays()
    {
        using UploadStore store = new(new ResumableUploadOptions { Folder = Folder, MaxTotalLength = 100 }, _time);
        string left = UploadStore.NewId();
        (await store.CreateAsync(left, new UploadState { Length = 60, Concat = "final;a" })).Dispose();
        string begun = UploadStore.NewId();
        (await store.CreateAsync(begun, new UploadState { Length = 10 })).Dispose();
        string held = UploadStore.NewId();
        using StoredUpload upload = await store.CreateAsync(held, new UploadState { Length = 10, Concat = "final;b" });

        store.Sweep();

        Assert.Equal((false, true, true), (IsThere(left), IsThere(begun), IsThere(held)));
        Assert.False(File.Exists(store.PartPathOf(left)));
        Assert.True(store.TryCount(80));
        Assert.False(store.TryCount(1));

        bool IsThere(string id) => store.Read(id) is not null;
    }

    [Fact]
    public async Task FinishedPart_KeepsItsLock_SoThatTwoNeverHoldIt_UntilItIsRemoved()
    {
        using UploadStore store = new(new ResumableUploadOptions { Folder = Folder, MaxTotalLength = 100 }, _time);
        string id = UploadStore.NewId();
        using (StoredUpload upload = await store.CreateAsync(id, new UploadState { Length = 60, Concat = "partial" }))
        {
            await upload.SaveStateAsync(upload.State with { Offset = 60, IsFinished = true });
        }

        // Who has opened a lock that is then removed would hold another one than who opens it next.
        Assert.True(File.Exists(store.LockPathOf(id)));
        using (StoredUpload upload = store.Open(id)!)
        {
            upload.Remove();
        }

        Assert.Empty(Directory.EnumerateFileSystemEntries(Folder));
        Assert.True(store.TryCount(100));
        Assert.False(store.TryCount(1));
    }

    [Fact]
    public async Task Upload_WhoseBytesAreNoFile_LeavesNoHandleOpen()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "FIFOs, and /proc, which tells what is open.");
        using UploadStore store = new(new ResumableUploadOptions { Folder = Folder }, _time);
        string id = UploadStore.NewId();
        (await store.CreateAsync(id, new UploadState { Length = 60 })).Dispose();
        File.Delete(store.PartPathOf(id));
        Assert.Equal(0, MakeFifo(store.PartPathOf(id), 0x180));

        Assert.ThrowsAny<Exception>(() => store.Open(id));

        Assert.Equal(0, FilePipelines.Tests.OpenHandles.Below(Folder));
    }

    [Theory]
    [InlineData(Place.Part), InlineData(Place.Between), InlineData(Place.Saved)]
    public async Task Upload_ThatHasGotItsPermissionsBeforeAKill_IsFinishedByTheNextRequest(Place place)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() && Environment.IsPrivilegedProcess, "Only root becomes another user.");
        ResumableUploadOptions options = new()
        {
            Folder = Folder,
            OnCompletedAsync = async (upload, stop) => await upload.SaveAsync(Saved, new() { UnixCreateMode = ReadOnly }, stop),
        };
        string id = UploadStore.NewId();
        using UploadStore store = new(options, _time);
        (await store.CreateAsync(id, new UploadState { Length = 5 })).Dispose();
        string path = place switch
        {
            Place.Part => store.PartPathOf(id),
            Place.Between => UploadStore.BetweenPathOf(id, Saved),
            _ => Saved,
        };
        File.Move(store.PartPathOf(id), path);
        await File.WriteAllTextAsync(path, "hello", _stop);
        File.SetUnixFileMode(path, ReadOnly);
        Assert.True(FileIdentity.TryGet(path, out FileIdentity identity));
        UploadState state = store.Read(id)! with { Offset = 4, SavingTo = Saved, Identity = identity.ToString() };
        byte[] bytes = JsonSerializer.SerializeToUtf8Bytes(state, UploadStateContext.Default.UploadState);
        await File.WriteAllBytesAsync(store.StatePathOf(id), bytes, _stop);
        foreach (string owned in Directory.EnumerateFiles(Root, "*", SearchOption.AllDirectories).Append(Folder).Append(Root))
        {
            Assert.Equal(0, ChangeOwner(owned, Nobody, Nobody));
        }

        StoredUpload? upload = null;
        Exception? error = null;
        Thread thread = new(() => error = Record.Exception(() =>
        {
            // Of this thread alone (setfsuid(2)).
            _ = SetFileUser(Nobody);
            upload = store.Open(id);
        }));
        thread.Start();
        thread.Join();

        using (upload)
        {
            Assert.Null(error);
            Assert.Equal((4, place == Place.Saved), (upload!.State.Offset, upload.IsSaved));
            Assert.Equal(place == Place.Saved ? ReadOnly : UnixFileMode.UserRead | UnixFileMode.UserWrite, File.GetUnixFileMode(path));
        }
    }

    public enum Place
    {
        Part,
        Between,
        Saved,
    }

    [LibraryImport("libc", EntryPoint = "mkfifo", StringMarshalling = StringMarshalling.Utf8)]
    private static partial int MakeFifo(string path, uint mode);

    [LibraryImport("libc", EntryPoint = "chown", StringMarshalling = StringMarshalling.Utf8)]
    private static partial int ChangeOwner(string path, uint user, uint group);

    [LibraryImport("libc", EntryPoint = "setfsuid")]
    private static partial int SetFileUser(uint user);
}
