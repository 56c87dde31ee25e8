namespace FilePipelines.Tests;

/// <summary>A write that fails, is short or is interrupted: an unbroken prefix in the file, and the failure reported.</summary>
public sealed class WriterFailureTests : FileTests
{
    private const int Total = 40_000;

    public WriterFailureTests() => Assert.SkipWhen(OperatingSystem.IsWindows(), "It scripts the Unix system calls.");

    public static MatrixTheoryData<int, FlushGuarantee> EveryCall { get; } = new(Enumerable.Range(1, 12), Enum.GetValues<FlushGuarantee>());

    [Theory]
    [InlineData(1, true, FlushGuarantee.WriteBehind)]
    [InlineData(1, false, FlushGuarantee.WriteBehind)]
    [InlineData(3, true, FlushGuarantee.WriteBehind)]
    [InlineData(3, false, FlushGuarantee.WriteBehind)]
    [InlineData(1, false, FlushGuarantee.Durable)]
    [InlineData(3, true, FlushGuarantee.Durable)]
    public async Task Complete_EagainFromAFileThatCanSeek_IsAnErrorAndTheFileHoldsWhatCameBefore(
        int call, bool isAsync, FlushGuarantee guarantee)
    {
        CheckedPool pool = new();
        ScriptedCalls calls = new() { OnWrite = number => number == call ? -Libc.EAGAIN : 1000 };
        string path = _folder.File("f");
        FilePipeWriter writer = calls.Write(path, new() { MinimumBufferSize = 500, Pool = pool, FlushGuarantee = guarantee });
        writer.Put(10_000);
        Exception? thrown = isAsync
            ? await Record.ExceptionAsync(async () => await writer.CompleteAsync())
            : Record.Exception(() => writer.Complete());
        Assert.Contains(path, Assert.IsType<IOException>(thrown).Message, StringComparison.Ordinal);
        Assert.True(writer.OpenedFile.Handle.IsClosed);
        Assert.Equal(Pattern.Bytes((call - 1) * 1000), File.ReadAllBytes(path));
        Assert.Equal(call, calls.Writes);
        pool.AssertReturned();
    }

    [Theory]
    [MemberData(nameof(EveryCall))]
    public async Task Write_FailsAtCall_FileHoldsAnUnbrokenPrefixAndEveryLaterCallThrows(int failing, FlushGuarantee guarantee)
    {
        // Short writes before the failure make the calls many, and move the failure into the middle of a segment.
        ScriptedCalls calls = new() { OnWrite = call => call >= failing ? -Libc.EIO : 3333 };
        string path = _folder.File("f");
        FilePipeWriter writer = calls.Write(path, new() { FlushGuarantee = guarantee, MinimumBufferSize = 1000 });
        IOException? first = null;
        for (int index = 0; index < Total; index += 1000)
        {
            writer.Put(1000, index);
            try
            {
                await writer.FlushAsync(_stop);
                Assert.Null(first);
            }
            catch (IOException e)
            {
                first = e;
            }
        }

        IOException last = await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        Assert.Contains(path, last.Message, StringComparison.Ordinal);
        Assert.Equal(Libc.EIO, last.HResult);
        Assert.Equal(failing, calls.Writes);
        byte[] content = File.ReadAllBytes(path);
        Assert.Equal(calls.BytesWritten, content.Length);
        Assert.Equal(-1, Pattern.FirstDifference(content));
        Assert.Equal(content.Length, writer.Position);

        // Again, and again by the blocking way.
        await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        Assert.Throws<IOException>(() => writer.Complete());
    }

    [Theory]
    [InlineData(FlushGuarantee.WriteBehind), InlineData(FlushGuarantee.Written)]
    public async Task Write_ShortAndInterrupted_IsContinued(FlushGuarantee guarantee)
    {
        ScriptedCalls calls = new() { OnWrite = call => call % 3 == 0 ? -Libc.EINTR : 1 + (call % 7) };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { FlushGuarantee = guarantee, MinimumBufferSize = 10 });
        for (int index = 0; index < 3000; index += 30)
        {
            await writer.WriteAsync(Pattern.Bytes(30, index), _stop);
        }

        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(3000), File.ReadAllBytes(_folder.File("f")));
    }

    [Theory]
    [InlineData(0, false, false)]
    [InlineData(0, true, false)]
    [InlineData(0, false, true)]
    [InlineData(3, false, false)]
    [InlineData(3, true, false)]
    [InlineData(3, false, true)]
    public async Task Complete_HoweverItEnds_GivesTheMemoryBackOnce(int failing, bool blocks, bool drops)
    {
        CheckedPool pool = new();
        ScriptedCalls calls = new() { OnWrite = call => call == failing ? -Libc.EIO : 3333 };
        FilePipeWriter writer = calls.Write(_folder.File("f"), new() { MinimumBufferSize = 1000, Pool = pool });
        for (int index = 0; index < Total; index += 1000)
        {
            writer.Put(1000, index);
            if (index % 3000 == 0)
            {
                _ = await Record.ExceptionAsync(async () => await writer.FlushAsync(_stop));
            }
        }

        Exception? reason = drops ? new InvalidOperationException() : null;
        Exception? failure = blocks
            ? Record.Exception(() => writer.Complete(reason))
            : await Record.ExceptionAsync(async () => await writer.CompleteAsync(reason));
        Assert.Equal(failing == 0 ? null : typeof(IOException), failure?.GetType());
        pool.AssertReturned();
        Assert.True(writer.OpenedFile.Handle.IsClosed);
    }

    [Fact]
    public async Task Write_Failed_GivesBackWhatWasHandedOverBeforeTheFlushEnds()
    {
        using ManualResetEventSlim gate = new();
        ScriptedCalls calls = new()
        {
            OnWrite = _ =>
            {
                gate.Wait(Eventually.Limit);
                return -5;
            },
        };
        CheckedPool pool = new();
        FilePipeWriter writer = calls.Write(
            _folder.File("f"), new() { Pool = pool, MinimumBufferSize = 4096, FlushGuarantee = FlushGuarantee.Written });
        Task<FlushResult> flush = writer.WriteAsync(Pattern.Bytes(100_000), _stop).AsTask();
        Assert.True(pool.Rented > 1);
        gate.Set();
        await Assert.ThrowsAsync<IOException>(() => flush.WaitAsync(Eventually.Limit, _stop));

        // The one that takes the next bytes is the caller's.
        Assert.Equal(1, pool.Rented);
        await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        Assert.Equal(0, pool.Rented);
    }

    [Fact]
    public async Task Write_FailedAndStillFed_KeepsNoMoreThanWhatIsNotFlushed()
    {
        CheckedPool pool = new();
        ScriptedCalls calls = new() { OnWrite = _ => -Libc.EIO };
        FilePipeWriter writer = calls.Write(
            _folder.File("f"), new() { MinimumBufferSize = 1000, Pool = pool, FlushGuarantee = FlushGuarantee.Written });
        for (int i = 0; i < 50; i++)
        {
            await Assert.ThrowsAsync<IOException>(async () => await writer.WriteAsync(Pattern.Bytes(5000), _stop));
            Assert.InRange(pool.Rented, 0, 6);
        }

        await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        Assert.Equal(0, pool.Rented);
    }

    /// <summary>fdatasync(2) has answered 0, but the file system's journal had ended before it could hold the bytes.</summary>
    [Theory]
    [InlineData(Libc.EROFS), InlineData(Libc.EIO)]
    public async Task Sync_SucceedsOnAFileSystemThatHasFailed_IsThrownByTheFlushAndByComplete(int error)
    {
        string path = _folder.File("f");
        ScriptedCalls calls = new() { OnTellFailure = sync => sync == 2 ? -error : null };
        FilePipeWriter writer = calls.Write(path, new() { FlushGuarantee = FlushGuarantee.Durable });
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await writer.WriteAsync(Pattern.Bytes(10), _stop));
        Assert.Contains(path, e.Message, StringComparison.Ordinal);
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.FlushAsync(_stop)));
        Assert.Same(e, await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync()));
        Assert.Equal(2, calls.Syncs);
    }

    /// <summary>The kernel keeps a file open until a call that is under way returns.</summary>
    [Fact]
    public async Task Sync_HandleIsClosedDuringTheCall_Succeeds()
    {
        SafeFileHandle handle = File.OpenHandle(_folder.File("f"), FileMode.Create, FileAccess.Write);
        ScriptedCalls calls = new()
        {
            OnTellFailure = _ =>
            {
                handle.Dispose();
                return null;
            },
        };
        FilePipeWriter writer = calls.Write(handle, new() { FlushGuarantee = FlushGuarantee.Durable });
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        Assert.Equal(1, calls.Syncs);
        Assert.True(handle.IsClosed);
        await writer.CompleteAsync();
        Assert.Equal(Pattern.Bytes(10), File.ReadAllBytes(_folder.File("f")));
    }

    [Fact]
    public async Task Write_ToAFullDevice_ThrowsWithTheNameOfTheFile()
    {
        Assert.SkipUnless(File.Exists("/dev/full"), "There is no /dev/full.");
        FilePipeWriter writer = FilePipeWriter.Create("/dev/full", new() { Mode = FileMode.Open });
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        IOException e = await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
        Assert.Contains("/dev/full", e.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Write_ToAHandleThatIsOpenForReading_ThrowsAndNamesTheFile()
    {
        string path = _folder.File("f", [1, 2, 3]);
        using SafeFileHandle handle = File.OpenHandle(path);
        UnauthorizedAccessException e = await Assert.ThrowsAsync<UnauthorizedAccessException>(async () =>
        {
            FilePipeWriter writer = FilePipeWriter.Create(handle);
            await writer.WriteAllAsync(Pattern.Bytes(10));
        });
        if (OperatingSystem.IsLinux())
        {
            Assert.Contains(path, e.Message, StringComparison.Ordinal);
        }

        Assert.Equal([1, 2, 3], File.ReadAllBytes(path));
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task Write_HandleIsClosedUnderneath_ThrowsAndCompleteEnds(bool isFifo)
    {
        using Fifo fifo = Fifo.Create(_folder);
        using SafeFileHandle readEnd = File.OpenHandle(fifo.Path);
        SafeFileHandle handle = File.OpenHandle(
            isFifo ? fifo.Path : _folder.File("f"), isFifo ? FileMode.Open : FileMode.Create, FileAccess.Write);
        FilePipeWriter writer = FilePipeWriter.Create(handle, new() { FlushGuarantee = FlushGuarantee.Written });
        handle.Dispose();
        await Assert.ThrowsAsync<ObjectDisposedException>(
            () => writer.WriteAsync(Pattern.Bytes(10), _stop).AsTask().WaitAsync(Eventually.Limit, _stop));
        await Assert.ThrowsAsync<ObjectDisposedException>(() => writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop));
    }

    [Fact]
    public async Task Complete_LengthCannotBeSet_ThrowsAndClosesTheFile()
    {
        ChildProcess.SkipUnlessLinux("chattr");
        string path = _folder.File("f");
        FilePipeWriter writer = FilePipeWriter.Create(path, new() { PreallocationSize = 100_000 });
        await writer.WriteAsync(Pattern.Bytes(10), _stop);
        await writer.FlushAsync(FlushGuarantee.Written, _stop);
        using System.Diagnostics.Process forbid = ChildProcess.Start($"chattr +a '{path}'");
        await forbid.WaitForExitAsync(_stop);
        Assert.SkipUnless(forbid.ExitCode == 0, "The temporary folder's file system, or this user, cannot make a file append-only.");
        try
        {
            UnauthorizedAccessException e = await Assert.ThrowsAsync<UnauthorizedAccessException>(
                () => writer.CompleteAsync().AsTask().WaitAsync(Eventually.Limit, _stop));
            Assert.Contains(path, e.Message, StringComparison.Ordinal);
            Assert.Equal(0, OpenHandles.Of(path));
        }
        finally
        {
            using System.Diagnostics.Process allow = ChildProcess.Start($"chattr -a '{path}'");
            await allow.WaitForExitAsync(CancellationToken.None);
        }
    }

    [Fact]
    public async Task Write_TmpfsFillsUp_FileHoldsAnUnbrokenPrefix()
    {
        ChildProcess.SkipUnlessLinux("mount", "umount");
        string mount = _folder.File("small");
        Directory.CreateDirectory(mount);
        (int status, _, string error) = await ChildProcess.RunAsync($"mount -t tmpfs -o size=256k tmpfs '{mount}'");
        Assert.SkipUnless(status == 0, $"A tmpfs cannot be mounted here: {error}");
        try
        {
            string path = Path.Combine(mount, "f");
            FilePipeWriter writer = FilePipeWriter.Create(path);
            IOException e = await Assert.ThrowsAsync<IOException>(async () =>
            {
                for (int index = 0; index < 1 << 20; index += 1000)
                {
                    await writer.WriteAsync(Pattern.Bytes(1000, index), _stop);
                }

                await writer.CompleteAsync();
            });
            Assert.Contains(path, e.Message, StringComparison.Ordinal);
            await Assert.ThrowsAsync<IOException>(async () => await writer.CompleteAsync());
            byte[] content = File.ReadAllBytes(path);
            Assert.Equal(256 * 1024, content.Length);
            Assert.Equal(-1, Pattern.FirstDifference(content));
        }
        finally
        {
            await ChildProcess.RunAsync($"umount '{mount}'");
        }
    }

    [Theory]
    [InlineData("WriteBehind"), InlineData("Written")]
    public async Task Write_PastTheFileSizeLimit_FileHoldsAnUnbrokenPrefix(string guarantee)
    {
        ChildProcess.SkipUnlessLinux("sh");
        string path = _folder.File("f");

        // 64 blocks of 512 bytes; the signal that goes with the limit would end the process (setrlimit(2)).
        (int status, string output, _) = await ChildProcess.RunAsync($"trap '' XFSZ; ulimit -f 64; DOTNET_EnableWriteXorExecute=0 exec "
            + $"{ChildProcess.Command("write", path, "100000", "1000", guarantee)}");
        Assert.Equal(3, status);
        Assert.Contains(path, output, StringComparison.Ordinal);
        byte[] content = File.ReadAllBytes(path);
        Assert.Equal(64 * 512, content.Length);
        Assert.Equal(-1, Pattern.FirstDifference(content));
    }
}
