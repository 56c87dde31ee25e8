using System.Diagnostics;
using System.Runtime.CompilerServices;
using Pipelines.File.Growing;

namespace FilePipelines.Tests;

/// <summary>A followed file under callers, names and file systems that are not kind to it.</summary>
[Collection("whole process")]
public sealed class FollowRudeTests : FileTests
{
    [Fact]
    public async Task ReadAsync_ManyShortFollowers_EachHasAWatch()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only: inotify(7).");
        string path = _folder.File("log", "one\n"u8.ToArray());
        int watched = 0;
        const int Rounds = 2000;
        for (int round = 0; round < Rounds; round++)
        {
            FilePipeReader reader = FilePipeReader.Create(path, GrowingFile.Options(offset: 4));
            ValueTask<ReadResult> waiting = reader.ReadAsync(_stop);
            reader.CancelPendingRead();
            Assert.True((await waiting).IsCanceled);
            watched += WatchOf((FollowedFile)reader.OpenedFile)!.Number != 0 ? 1 : 0;
            await reader.CompleteAsync();
        }

        Assert.Equal(Rounds, watched);
    }

    [Fact]
    public async Task CancelPendingRead_OfACopyByAThreadOfThePool_RunsNothingOfTheCallersWithinIt()
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = file.Follow();
        Pipe pipe = new();
        Task copying = reader.CopyToAsync(pipe.Writer, _stop);
        await Eventually.TrueAsync(() => ((FollowedFile)reader.OpenedFile).IsWaiting);
        int canceling = 0;
        bool isWithin = false;
        Task goingOn = copying.ContinueWith(
            _ => isWithin = Volatile.Read(ref canceling) == Environment.CurrentManagedThreadId,
            CancellationToken.None,
            TaskContinuationOptions.ExecuteSynchronously,
            TaskScheduler.Default);
        await Task.Run(
            () =>
            {
                Volatile.Write(ref canceling, Environment.CurrentManagedThreadId);
                reader.CancelPendingRead();
                Volatile.Write(ref canceling, 0);
            },
            _stop);
        await goingOn;
        Assert.True(copying.IsCanceled);
        Assert.False(isWithin);
    }

    [Fact]
    public async Task ReadAsync_CanceledEveryFewMilliseconds_CompletesWhenTheNameIsLost()
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = file.Follow();
        await GrowingFile.ExpectAsync(reader, "one\n");
        File.Move(file.Path, file.Path + ".1");
        file.Reopen();
        file.Append("another\n");
        long begun = Environment.TickCount64;
        ReadResult result;
        do
        {
            Assert.True(Environment.TickCount64 - begun < Eventually.Limit.TotalMilliseconds, "It does not end.");
            Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
            await Task.WhenAny(read, Task.Delay(2, _stop));
            reader.CancelPendingRead();
            result = await GrowingFile.Bounded(read);
            Assert.True(result.Buffer.IsEmpty);
        }
        while (!result.IsCompleted);
    }

    [Fact]
    public async Task ReadAsync_NameIsALinkToItself_Completes()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Links take a privilege there.");
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = file.Follow();
        await GrowingFile.ExpectAsync(reader, "one\n");
        Task<string> rest = GrowingFile.ReadToEndAsync(reader);
        File.Delete(file.Path);
        File.CreateSymbolicLink(file.Path, file.Path);
        Assert.Equal("", await rest);
    }

    [Fact]
    public async Task ReadAsync_FileOfAnOverlayIsWrittenForTheFirstTime_IsTheSameFile()
    {
        ChildProcess.SkipUnlessLinux("unshare", "mount", "timeout");
        string folder = _folder.Path;
        (_, string output, string error) = await ChildProcess.RunAsync(
            $$"""
            timeout 300 unshare -rm sh -c '
            cd "{{folder}}" && mkdir lower upper work merged && echo one > lower/log || exit
            mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged || exit
            {{ChildProcess.Command("follow", folder + "/merged/log").Replace("'", "\"", StringComparison.Ordinal)}} > out &
            until grep -q one out; do sleep 0.05; done
            echo two >> merged/log
            until grep -q two out; do sleep 0.05; done
            sleep 1.5
            echo three >> merged/log
            until grep -q "three\|completed" out; do sleep 0.05; done
            mv merged/log merged/log.1
            wait
            cat out'
            """);
        Assert.SkipWhen(output.Length == 0 && error.Length > 0, $"No overlay can be mounted here: {error}");
        Assert.Equal("one\ntwo\nthree\ncompleted\n", output);
    }

    /// <summary>
    /// Some file systems tell nothing of an open file that has no name any more, but read it. A closed handle stands for that here.
    /// </summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task ReadAsync_NameIsLostAndNobodyTellsTheLength_Completes(bool isReplaced)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only.");
        string path = _folder.File("log", "one\n"u8.ToArray());
        string other = _folder.File("other", "two\n"u8.ToArray());
        bool isClosed = false;
        long? OnRead(int call) => Volatile.Read(ref isClosed) ? 0 : null;
        ScriptedCalls calls = new() { OnRead = OnRead, OnReadNoWait = OnRead };
        await using FilePipeReader reader = FilePipeReader.Create(
            calls.Backend(path, FileMode.Open, FileAccess.Read), GrowingFile.Options(offset: 4), leaveOpen: false, isOpenedByPath: true);
        FollowedFile followed = (FollowedFile)reader.OpenedFile;
        WatchOf(followed) = null;
        Task<ReadResult> waiting = reader.ReadAsync(_stop).AsTask();
        await Eventually.TrueAsync(() => followed.IsWaiting);
        Volatile.Write(ref isClosed, true);
        followed.Handle.Dispose();
        if (isReplaced)
        {
            File.Move(other, path, overwrite: true);
        }
        else
        {
            File.Delete(path);
        }

        ReadResult result = await waiting.WaitAsync(Eventually.Limit, _stop);
        Assert.True(result.IsCompleted && result.Buffer.IsEmpty);
    }

    [Fact]
    public async Task ReadAsync_HandleIsClosedByItsOwner_Throws()
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        SafeFileHandle handle = File.OpenHandle(file.Path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete);
        await using FilePipeReader reader = FilePipeReader.Create(
            handle, new() { Follow = true, FollowInterval = TimeSpan.FromMilliseconds(1), LeaveOpen = true });
        await GrowingFile.ExpectAsync(reader, "one\n");
        Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
        handle.Dispose();
        await Assert.ThrowsAnyAsync<ObjectDisposedException>(() => GrowingFile.Bounded(waiting));
        await Assert.ThrowsAnyAsync<ObjectDisposedException>(() => GrowingFile.Bounded(reader.ReadAsync(_stop)));
    }

    [Theory]
    [InlineData(0)]
    [InlineData(100)]
    public async Task ReadAsync_Portable_WaitsAndCompletesAsTheOthers(long readAhead)
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        FilePipeReaderOptions options = new()
        {
            Follow = true,
            FollowInterval = GrowingFile.Interval,
            Backend = FilePipeBackend.Portable,
            PauseReadAheadThreshold = readAhead,
        };
        await using FilePipeReader reader = FilePipeReader.Create(file.Path, options);
        await GrowingFile.ExpectAsync(reader, "one\n");
        for (int i = 0; i < 5; i++)
        {
            Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
            reader.CancelPendingRead();
            Assert.True((await GrowingFile.Bounded(waiting)).IsCanceled);
            waiting = await GrowingFile.WaitAtEndAsync(reader);
            file.Append("two\n");
            ReadResult result = await GrowingFile.Bounded(waiting);
            reader.AdvanceTo(result.Buffer.Start);
            await GrowingFile.ExpectAsync(reader, "two\n");
        }

        Task<string> rest = GrowingFile.ReadToEndAsync(reader);
        file.Append("three");
        File.Move(file.Path, file.Path + ".1");
        Assert.Equal("three", await rest);
    }

    [Fact]
    public async Task ReadAsync_CutToWhatWasRead_WaitsForMore()
    {
        using GrowingFile file = new(_folder.File("log"), "one\ntwo\n");
        await using FilePipeReader reader = file.Follow(length: null);
        await using FilePipeReader limited = file.Follow(length: 4);
        await using FilePipeReader second = file.Follow(offset: 4);
        await using FilePipeReader first = file.Follow(offset: 0, length: 8);
        await GrowingFile.ExpectAsync(reader, "one\ntwo\n");
        await GrowingFile.ExpectAsync(limited, "one\n");
        file.Cut(8);
        Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
        Assert.True((await GrowingFile.Bounded(limited.ReadAsync(_stop))).IsCompleted);
        file.Append("three\n");
        ReadResult result = await GrowingFile.Bounded(waiting);
        Assert.Equal(6, result.Buffer.Length);
        reader.AdvanceTo(result.Buffer.End);
        await GrowingFile.ExpectAsync(second, "two\nthree\n");
        Assert.Equal("one\ntwo\n", await GrowingFile.ReadToEndAsync(first));
    }

    [Fact]
    public async Task ReadAsync_EmptyFileIsCutWithNothingRead_Waits()
    {
        using GrowingFile file = new(_folder.File("log"));
        await using FilePipeReader reader = file.Follow();
        Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
        file.Cut(0);
        await Task.Delay(150, _stop);
        Assert.False(waiting.IsCompleted);
        file.Append("one");
        Assert.Equal(3, (await GrowingFile.Bounded(waiting)).Buffer.Length);
        Assert.Equal(0, reader.Length);
    }

    [Theory]
    [InlineData("fallocate -l 100 \"$0\"")]
    [InlineData("truncate -s 100 \"$0\"")]
    [InlineData("dd if=/dev/zero of=\"$0\" bs=4096 count=1 oflag=direct conv=notrunc 2>/dev/null")]
    [InlineData("python3 -c 'import os,sys;a=os.open(\"/etc/passwd\",0);b=os.open(sys.argv[1],2);os.copy_file_range(a,b,100,0,4)' \"$0\"")]
    [InlineData("python3 -c 'import os,sys;a=os.open(\"/etc/passwd\",0);b=os.open(sys.argv[1],2);os.lseek(b,4,0);os.sendfile(b,a,0,100)' "
        + "\"$0\"")]
    [InlineData("python3 -c 'import os,sys,mmap;b=os.open(sys.argv[1],2);os.ftruncate(b,100);m=mmap.mmap(b,100);m[4]=65' \"$0\"")]
    public async Task ReadAsync_GrowsOtherwiseThanByWrite_GivesIt(string command)
    {
        ChildProcess.SkipUnlessLinux("fallocate", "truncate", "dd", "python3");
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = file.Follow();
        await GrowingFile.ExpectAsync(reader, "one\n");
        Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
        using Process process = Process.Start(new ProcessStartInfo("/bin/sh", ["-c", command, file.Path]))!;
        await GrowingFile.Bounded(process.WaitForExitAsync(_stop));
        Assert.SkipWhen(process.ExitCode != 0 || file.Length == 4, "This file system cannot do that.");
        ReadResult result = await GrowingFile.Bounded(waiting);
        Assert.False(result.IsCompleted);
        Assert.False(result.Buffer.IsEmpty);
    }

    [Fact]
    public async Task CopyToAsync_MuchComesAfterTheEnd_IsCopiedInLargeSteps()
    {
        const int Length = 8 * 1024 * 1024;
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = file.Follow();
        WatchedWriter destination = new();
        Task copying = reader.CopyToAsync(destination, _stop);
        await Eventually.TrueAsync(() => destination.Length == 4);
        file.Append(new string('x', Length));
        await Eventually.TrueAsync(() => destination.Length == 4 + Length);
        File.Move(file.Path, file.Path + ".1");
        await GrowingFile.Bounded(copying);

        // Steps of 64 KiB, but for the first ones.
        Assert.InRange(destination.Flushes, 1, 2 * Length / (64 * 1024));
    }

    [Fact]
    public async Task Complete_WhileItIsCopied_EndsTheCopyAndLeavesTheDestination()
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        FilePipeReader reader = file.Follow();
        string destination = _folder.File("copy");
        FilePipeWriter writer = FilePipeWriter.Create(
            destination, new() { FlushGuarantee = FlushGuarantee.Written, Share = FileShare.ReadWrite });
        Task copying = reader.CopyToAsync(writer, _stop);
        await Eventually.TrueAsync(() => new FileInfo(destination).Length == 4);
        await GrowingFile.Bounded(reader.CompleteAsync().AsTask());
        await Assert.ThrowsAsync<InvalidOperationException>(() => GrowingFile.Bounded(copying));
        await GrowingFile.Bounded(writer.CompleteAsync().AsTask());
        Assert.Equal("one\n", await File.ReadAllTextAsync(destination, _stop));
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task ReadAsync_WaitAfterWait_AllocatesNothingAndIsCountedOnce(bool isCounted)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Elsewhere the timer makes the looks.");
        const int Waits = 2000;
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = FilePipeReader.Create(
            file.Path, new() { Follow = true, Offset = 4, FollowInterval = TimeSpan.FromDays(1) });
        using SafeFileHandle appended = File.OpenHandle(file.Path, FileMode.Open, FileAccess.Write, FileShare.ReadWrite | FileShare.Delete);
        using Counters? counters = isCounted ? new() : null;
        long allocated = 0;
        long handedOver = 0;
        foreach (int round in Warm.Rounds(2, () => isCounted || allocated / Waits < 10))
        {
            allocated = GC.GetTotalAllocatedBytes(precise: true);
            handedOver = (counters?["reads.handed_over"] ?? 0);
            for (int i = 0; i < Waits; i++)
            {
                ValueTask<ReadResult> waiting = reader.ReadAsync(_stop);
                RandomAccess.Write(appended, "two\n"u8, 4 + (4 * ((round * Waits) + i)));
                long end = Environment.TickCount64 + (long)Eventually.Limit.TotalMilliseconds;
                while (!waiting.IsCompleted && Environment.TickCount64 < end)
                {
                    Thread.Yield();
                }

                Assert.True(waiting.IsCompleted);
                reader.AdvanceTo((await waiting).Buffer.End);
            }

            allocated = GC.GetTotalAllocatedBytes(precise: true) - allocated;
            handedOver = (counters?["reads.handed_over"] ?? 0) - handedOver;
        }

        TestContext.Current.SendDiagnosticMessage($"{allocated / (double)Waits} bytes a wait, {handedOver} handed over");

        // A wait is one read that was handed over. Counting allocates.
        Assert.InRange(handedOver, isCounted ? 1 : 0, Waits);
        Assert.True(isCounted || allocated / Waits < 10, $"{allocated} bytes");
    }

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_watch")]
    private static extern ref FileWatch? WatchOf(FollowedFile file);
}
