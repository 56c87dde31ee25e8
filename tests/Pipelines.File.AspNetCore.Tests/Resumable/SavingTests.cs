namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>How a whole resumable upload takes its name.</summary>
public sealed class SavingTests : UploadsInAFolder
{
    [Fact]
    public async Task Reader_HasTheWholeUpload_AndWhatIsNotSavedIsRemoved()
    {
        byte[] content = FileTree.Content(300_000);
        byte[]? seen = null;
        await StartAsync(async (upload, stop) =>
        {
            MemoryStream copy = new();
            await upload.Reader.CopyToAsync(copy, stop);
            seen = copy.ToArray();
        });
        Uri upload = await SendAsync(content);
        Assert.Equal(content, seen);
        Assert.Equal(content.Length, await Server.OffsetAsync(upload));
        Assert.Single(Directory.EnumerateFileSystemEntries(Folder));
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task Save_OverAFile_TellsWhatAnAnswerNeeds(bool isDurable)
    {
        await File.WriteAllTextAsync(Saved, "old", _stop);
        File.SetLastWriteTimeUtc(Saved, DateTime.UtcNow.AddMinutes(-1));
        if (!OperatingSystem.IsWindows())
        {
            File.SetUnixFileMode(Saved, UnixFileMode.UserRead | UnixFileMode.UserWrite);
        }

        SavedFile? saved = null;
        string? replaced = null;
        await StartAsync(async (upload, stop) => saved = await upload.SaveAsync(Saved, new SaveBodyOptions
        {
            Durable = isDurable,
            BeforeReplaceAsync = async (old, stop) => replaced = await File.ReadAllTextAsync(old.FullName, stop),
        }, stop), isDurable);
        await SendAsync("new file"u8.ToArray());
        Assert.Equal("new file", await File.ReadAllTextAsync(Saved, _stop));
        Assert.Equal((true, 8, "old"), (saved!.Replaced, saved.Length, replaced));
        Assert.Equal(UploadPrecondition.TagOf(File.GetLastWriteTimeUtc(Saved), 8), saved.EntityTag);
        Assert.Equal(2, Directory.EnumerateFileSystemEntries(Root).Count());
        if (!OperatingSystem.IsWindows())
        {
            Assert.Equal(UnixFileMode.UserRead | UnixFileMode.UserWrite, File.GetUnixFileMode(Saved));
        }
    }

    [Fact]
    public async Task Save_ThatDoesNotOverwrite_ThrowsAndTheUploadStays()
    {
        await File.WriteAllTextAsync(Saved, "old", _stop);
        await StartAsync(async (upload, stop) =>
        {
            FileExistsException e = await Assert.ThrowsAsync<FileExistsException>(
                () => upload.SaveAsync(Saved, new SaveBodyOptions { Overwrite = false }, stop));
            Assert.Equal(Saved, e.FileName);
            await Assert.ThrowsAsync<Microsoft.AspNetCore.Http.BadHttpRequestException>(
                () => upload.SaveAsync(Saved, new SaveBodyOptions { IfNoneMatch = "*" }, stop));
            await Assert.ThrowsAnyAsync<UnauthorizedAccessException>(() => upload.SaveAsync(Root, cancellationToken: stop));
            await Assert.ThrowsAnyAsync<IOException>(() => upload.SaveAsync(Path.Combine(Root, "none", "f"), cancellationToken: stop));
            await upload.SaveAsync(Saved + "2", cancellationToken: stop);
            await Assert.ThrowsAsync<InvalidOperationException>(() => upload.SaveAsync(Saved + "3", cancellationToken: stop));
        });
        await SendAsync("new"u8.ToArray());
        Assert.Equal(("old", "new"), (await File.ReadAllTextAsync(Saved, _stop), await File.ReadAllTextAsync(Saved + "2", _stop)));
        Assert.Equal(3, Directory.EnumerateFileSystemEntries(Root).Count());
    }

    [Fact]
    public async Task OnCompleted_ThatThrows_IsCalledAgainForTheLastByte()
    {
        int calls = 0;
        await StartAsync(async (upload, stop) =>
        {
            if (++calls < 3)
            {
                throw new InvalidOperationException("not yet");
            }

            await upload.SaveAsync(Saved, cancellationToken: stop);
        });
        Uri upload = await Server.CreateAsync(5);
        Assert.Equal(500, (await Server.PatchAsync(upload, 0, "hello"u8.ToArray())).Status);
        Assert.Equal(4, await Server.OffsetAsync(upload));
        Assert.Equal(500, (await Server.PatchAsync(upload, 4, "o"u8.ToArray())).Status);
        Assert.Equal(204, (await Server.PatchAsync(upload, 4, "o"u8.ToArray())).Status);
        Assert.Equal("hello", await File.ReadAllTextAsync(Saved, _stop));
        Assert.Equal(3, calls);
    }

    [Fact]
    public async Task OnCompleted_ThatThrowsAfterSaving_FindsTheFileThere()
    {
        int calls = 0;
        await StartAsync(async (upload, stop) =>
        {
            calls++;
            SavedFile saved = await upload.SaveAsync(Saved, new SaveBodyOptions { Overwrite = false }, stop);
            Assert.Equal(5, saved.Length);
            Assert.Equal(5, (await upload.Reader.ReadAtLeastAsync(5, stop)).Buffer.Length);
            upload.Reader.AdvanceTo((await upload.Reader.ReadAsync(stop)).Buffer.End);
            if (calls == 1)
            {
                throw new InvalidOperationException("not yet");
            }
        });
        Uri upload = await Server.CreateAsync(5);
        Assert.Equal(500, (await Server.PatchAsync(upload, 0, "hello"u8.ToArray())).Status);
        Assert.Equal(4, await Server.OffsetAsync(upload));
        Assert.Equal(204, (await Server.PatchAsync(upload, 4, "X"u8.ToArray())).Status);
        Assert.Equal(("hello", 2), (await File.ReadAllTextAsync(Saved, _stop), calls));
    }

    [Fact]
    public async Task ProcessThatIsKilled_BetweenTheTwoRenames_GoesOnFromThere()
    {
        await StartAsync(async (upload, stop) => await upload.SaveAsync(Saved, cancellationToken: stop));
        Uri upload = await LeaveBetweenRenamesAsync();
        Assert.Equal(4, await Server.OffsetAsync(upload));
        Assert.Equal(204, (await Server.PatchAsync(upload, 4, "o"u8.ToArray())).Status);
        Assert.Equal("hello", await File.ReadAllTextAsync(Saved, _stop));
        Assert.Equal([Saved, Folder], Directory.EnumerateFileSystemEntries(Root).Order(StringComparer.Ordinal));
    }

    [Fact]
    public async Task Data_ThatIsShorterThanTheState_IsSentAgain()
    {
        await StartAsync(async (upload, stop) => await upload.SaveAsync(Saved, cancellationToken: stop));
        Uri upload = await Server.CreateAsync(5);
        await Server.PatchAsync(upload, 0, "hell"u8.ToArray());
        string part = Path.Combine(Folder, upload.Segments[^1] + ".part");
        await File.WriteAllTextAsync(part, "he", _stop);
        Assert.Equal(2, await Server.OffsetAsync(upload));
        Assert.Equal(409, (await Server.PatchAsync(upload, 4, "o"u8.ToArray())).Status);
        File.Delete(part);
        Assert.Equal(0, await Server.OffsetAsync(upload));
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, "hell"u8.ToArray())).Status);

        // What a request that was cut off has written behind the offset is not in the file.
        await File.AppendAllTextAsync(part, "p, and more", _stop);
        Assert.Equal(204, (await Server.PatchAsync(upload, 4, "o"u8.ToArray())).Status);
        Assert.Equal("hello", await File.ReadAllTextAsync(Saved, _stop));
    }

    [Theory]
    [InlineData("")]
    [InlineData("{")]
    [InlineData("null")]
    [InlineData("[]")]
    [InlineData("{\"offset\":\"x\"}")]
    [InlineData("\0\0\0\0\0\0\0\0")]
    public async Task State_ThatIsDamaged_IsNoUpload(string text)
    {
        await StartAsync(async (upload, stop) => await upload.SaveAsync(Saved, cancellationToken: stop));
        Uri upload = await Server.CreateAsync(5);
        await File.WriteAllTextAsync(Path.Combine(Folder, upload.Segments[^1] + ".json"), text, _stop);
        Assert.Equal(404, (await Server.HeadAsync(upload)).Status);
        Assert.Equal(404, (await Server.PatchAsync(upload, 0, [1])).Status);
        Assert.Equal(404, (await Server.SendAsync("DELETE", upload, null)).Status);
        Assert.Equal(201, (await Server.PostAsync(1)).Status);
    }

    [Fact]
    public async Task Save_ToAnotherFileSystem_Copies()
    {
        string other = "/dev/shm/" + Path.GetFileName(Root);
        Assert.SkipUnless(Directory.Exists("/dev/shm"), "There is no other file system.");
        Directory.CreateDirectory(other);
        try
        {
            byte[] content = FileTree.Content(3_000_000);
            string path = Path.Combine(other, "f");
            await StartAsync(async (upload, stop) => await upload.SaveAsync(path, new SaveBodyOptions { Overwrite = false }, stop), true);
            await SendAsync(content);
            Assert.Equal(content, await File.ReadAllBytesAsync(path, _stop));
            Assert.Single(Directory.EnumerateFileSystemEntries(other));
            Assert.Single(Directory.EnumerateFileSystemEntries(Folder));
        }
        finally
        {
            Directory.Delete(other, recursive: true);
        }
    }

    [Fact]
    public async Task DiskThatIsFull_Is507_AndTheUploadGoesOnWhenThereIsRoom()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux() && Environment.UserName == "root", "Only root mounts a small file system.");
        Directory.CreateDirectory(Folder);
        using Process mount = Process.Start("mount", ["-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", Folder]);
        await mount.WaitForExitAsync(_stop);
        Assert.SkipUnless(mount.ExitCode == 0, "A file system cannot be mounted here.");
        try
        {
            await StartAsync(async (upload, stop) => await upload.SaveAsync(Saved, cancellationToken: stop));
            string filler = Path.Combine(Folder, "filler");
            await File.WriteAllBytesAsync(filler, new byte[2_500_000], _stop);
            byte[] content = FileTree.Content(3_000_000);
            Uri upload = await Server.CreateAsync(content.Length);
            Assert.Equal(507, (await Server.PatchAsync(upload, 0, content)).Status);
            File.Delete(filler);
            long offset = await Server.OffsetAsync(upload);
            Assert.InRange(offset, 0, 2_000_000);
            Assert.Equal(204, (await Server.PatchAsync(upload, offset, content[(int)offset..])).Status);
            Assert.Equal(content, await File.ReadAllBytesAsync(Saved, _stop));
        }
        finally
        {
            await Server.DisposeAsync();
            using Process unmount = Process.Start("umount", ["-l", Folder]);
            await unmount.WaitForExitAsync(CancellationToken.None);
        }
    }

    private async Task<Uri> SendAsync(byte[] content)
    {
        Uri upload = await Server.CreateAsync(content.Length);
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, content)).Status);
        return upload;
    }
}
