namespace FilePipelines.Tests;

public sealed class FileLockTests : FileTests
{
    private const int ErrnoOfHeld = 11;

    [Fact]
    public void TryAcquire_Twice_OneHasItUntilItIsDisposed()
    {
        string path = _folder.File("lock");
        FileLock first = Assert.IsType<FileLock>(FileLock.TryAcquire(path));
        Assert.Equal(path, first.Path);
        Assert.True(first.IsInPlace);
        Assert.Null(FileLock.TryAcquire(path));
        Assert.Null(FileLock.TryAcquire(Path.Combine(_folder.Path, ".", "lock")));
        first.Dispose();
        first.Dispose();
        Assert.False(first.IsInPlace);
        using FileLock? second = FileLock.TryAcquire(path);
        Assert.NotNull(second);
    }

    [Fact]
    public void TryAcquire_WhatCannotBeALock_Throws()
    {
        Assert.Throws<ArgumentException>(() => FileLock.TryAcquire(""));
        Assert.Throws<DirectoryNotFoundException>(() => FileLock.TryAcquire(_folder.File("none/lock")));
        Assert.Throws<UnauthorizedAccessException>(() => FileLock.TryAcquire(_folder.Path));
    }

    /// <summary>One of 16 at a time: what they count without any other lock is right.</summary>
    [Fact]
    public void TryAcquire_ByManyThreads_OneAtATime()
    {
        string path = _folder.File("lock");
        int inside = 0;
        int together = 0;
        int taken = 0;
        Parallel.For(0, 400, new ParallelOptions { MaxDegreeOfParallelism = 16 }, _ =>
        {
            using FileLock? turn = FileLock.TryAcquire(path);
            if (turn is not null)
            {
                together = Interlocked.Increment(ref inside) > 1 ? 1 : together;
                Interlocked.Increment(ref taken);
                Interlocked.Decrement(ref inside);
            }
        });
        Assert.Equal(0, together);
        Assert.InRange(taken, 1, 400);
    }

    [Theory]
    [InlineData("")]
    [InlineData("DOTNET_SYSTEM_IO_DISABLEFILELOCKING=1")]
    public async Task TryAcquire_AnotherProcessHasIt_IsNullUntilThatIsGone(string setting)
    {
        ChildProcess.SkipUnlessLinux("dotnet");
        string path = _folder.File("lock");
        string command = $"exec env {setting} {ChildProcess.Command("lock", path)}";
        using Process child = ChildProcess.Start(command);
        try
        {
            Assert.Equal("locked", await child.StandardOutput.ReadLineAsync(TestContext.Current.CancellationToken));
            Assert.Null(FileLock.TryAcquire(path));
            (int exitCode, string output, _) = await ChildProcess.RunAsync(command);
            Assert.Equal((0, "held"), (exitCode, output.TrimEnd()));
        }
        finally
        {
            child.Kill();
            await child.WaitForExitAsync(TestContext.Current.CancellationToken);
        }

        using FileLock? taken = FileLock.TryAcquire(path);
        Assert.NotNull(taken);
    }

    [Fact]
    public void IsInPlace_FileRemovedReplacedOrRenamed_IsFalse()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "There a file that is open so can be neither removed nor renamed.");
        Assert.SkipUnless(OperatingSystem.IsLinux(), "macOS does not tell identities.");
        string path = _folder.File("lock");
        using FileLock taken = FileLock.TryAcquire(path)!;
        File.Move(path, path + ".old");
        Assert.False(taken.IsInPlace);
        File.WriteAllText(path, "another");
        Assert.False(taken.IsInPlace);
        File.Move(path + ".old", path, overwrite: true);
        Assert.True(taken.IsInPlace);
        string moved = _folder.Path + "-moved";
        Directory.Move(_folder.Path, moved);
        try
        {
            Assert.False(taken.IsInPlace);
        }
        finally
        {
            Directory.Move(moved, _folder.Path);
        }

        Assert.True(taken.IsInPlace);
        File.Delete(path);
        Assert.False(taken.IsInPlace);

        // Both have a lock, each of its own file. The first one can know it.
        using FileLock? second = FileLock.TryAcquire(path);
        Assert.True(second!.IsInPlace);
        Assert.False(taken.IsInPlace);
    }

    /// <summary>The holder deletes the file and gives the lock up, between another one's open and its flock.</summary>
    [Fact]
    public void TryAcquire_FileIsDeletedBeforeItsLockIsTaken_LocksTheNextFile()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It is about flock(2) and statx(2).");
        string path = _folder.File("lock");
        LockCalls calls = new((_, number) =>
        {
            if (number == 1)
            {
                File.Delete(path);
            }

            return null;
        });
        using FileLock? taken = FileLock.TryAcquire(path, calls);
        Assert.True(taken!.IsInPlace);
        Assert.Equal(2, calls.Locks);
    }

    [Fact]
    public void TryAcquire_FileIsReplacedEachTime_ThrowsAndHoldsNothing()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It is about flock(2) and statx(2).");
        string path = _folder.File("lock");
        Assert.Contains(path, Assert.Throws<IOException>(() => FileLock.TryAcquire(path, new LockCalls((_, _) =>
        {
            File.Delete(path);
            return null;
        }))).Message, StringComparison.Ordinal);
        using FileLock? taken = FileLock.TryAcquire(path);
        Assert.NotNull(taken);
    }

    /// <summary>A lock that cannot be had is never taken for granted.</summary>
    [Theory]
    [InlineData(1, "EPERM")]
    [InlineData(13, "EACCES")]
    [InlineData(37, "ENOLCK")]
    [InlineData(38, "ENOSYS")]
    [InlineData(22, "EINVAL")]
    [InlineData(9, "EBADF")]
    [InlineData(35, "EDEADLK")]
    [InlineData(95, "EOPNOTSUPP")]
    public void TryAcquire_FileSystemRefusesLocks_SaysWhatToDo(int errno, string name)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "The numbers are those of Linux.");
        string path = _folder.File("lock", []);
        using (SafeFileHandle file = File.OpenHandle(path))
        {
            Assert.SkipUnless(
                name != "EACCES" || LocalFileSystems.Hold(FileProperties.Of(file, path)),
                "Where the file system is not local, it is somebody else's lock.");
        }

        IOException error = Assert.Throws<IOException>(() => FileLock.TryAcquire(path, new LockCalls((_, _) => -errno)));
        Assert.Equal(errno, error.HResult);
        Assert.Contains(path, error.Message, StringComparison.Ordinal);
        Assert.True(error.Message.Contains("local file system", StringComparison.Ordinal), name);
        using FileLock? taken = FileLock.TryAcquire(path);
        Assert.NotNull(taken);
    }

    [Fact]
    public void TryAcquire_HeldOnAFileSystemThatDoesNotTellIdentities_IsNull()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "The numbers are those of Linux.");
        string path = _folder.File("lock");
        Assert.Null(FileLock.TryAcquire(path, new LockCalls((_, _) => -ErrnoOfHeld)));
        using FileLock? taken = FileLock.TryAcquire(path);
        Assert.NotNull(taken);
    }

    /// <summary>/proc gives no locks as SMB does: neither is local, and EACCES there is somebody else's lock.</summary>
    [Fact]
    public void TryAcquire_EaccesWhereItMeansHeld_IsNull()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "The numbers are those of Linux.");
        Assert.Null(FileLock.TryAcquire("/proc/self/comm", new LockCalls((_, _) => -13)));
    }

    [Fact]
    public void TryAcquire_FirstFlockOfAFileSystemThatGivesOneProcessEverything_TheTableRefusesTheSecond()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "The numbers are those of Linux.");
        string path = _folder.File("lock");
        LockCalls calls = new((_, _) => 0);
        FileLock? first = FileLock.TryAcquire(path, calls);
        Assert.NotNull(first);
        Assert.Null(FileLock.TryAcquire(path, calls));
        first.Dispose();
        using FileLock? second = FileLock.TryAcquire(path, calls);
        Assert.NotNull(second);
    }

    [Fact]
    public void TryAcquire_PlantedLink_ThrowsAndMakesNothing()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "O_NOFOLLOW is used on Linux.");
        string path = _folder.File("lock");
        string elsewhere = _folder.File("elsewhere");
        File.CreateSymbolicLink(path, elsewhere);
        Assert.Throws<IOException>(() => FileLock.TryAcquire(path));
        Assert.False(File.Exists(elsewhere));
    }

    /// <summary>A process that was just forked keeps the open file for a moment, and not the lock.</summary>
    [Fact]
    public void Dispose_SomebodyHasADuplicateOfTheDescriptor_GivesTheLockUp()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux system calls.");
        string path = _folder.File("lock");
        SafeFileHandle? copy = null;
        FileLock taken = FileLock.TryAcquire(path, new LockCalls((file, _) =>
        {
            copy = new SafeFileHandle(UnixCalls.Default.Duplicate(file), ownsHandle: true);
            return null;
        }))!;
        taken.Dispose();
        using (copy)
        {
            using FileLock? next = FileLock.TryAcquire(path);
            Assert.NotNull(next);
        }
    }

    private sealed class LockCalls(Func<SafeFileHandle, int, long?> onLock) : UnixCalls
    {
        public int Locks { get; private set; }

        internal override long Lock(SafeFileHandle file, int operation)
        {
            Locks++;
            return onLock(file, Locks) ?? base.Lock(file, operation);
        }
    }
}
