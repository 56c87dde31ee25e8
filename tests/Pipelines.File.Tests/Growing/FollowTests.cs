using System.Runtime.InteropServices;
using System.Text;
using Pipelines.File.Growing;

namespace FilePipelines.Tests;

/// <summary>A reader that waits at the end of its file: what it gives, when it completes, and that nothing of it is left.</summary>
[Collection("whole process")]
public sealed class FollowTests : FileTests
{
    /// <summary>Within this time after a rotation a test appends what is to be given. A busy machine may stop it in between.</summary>
    private static readonly TimeSpan s_grace = TimeSpan.FromSeconds(1);

    /// <summary>How a file loses its name.</summary>
    public enum Rotation
    {
        Rename,
        Delete,

        /// <summary>Another file is renamed over it.</summary>
        Replace,

        /// <summary>An empty one.</summary>
        ReplaceEmpty,

        /// <summary>It is renamed, and a new file made that bytes come to.</summary>
        Create,
        Truncate,
    }

    /// <summary>Every rotation, asleep and awake, with and without bytes that are unread.</summary>
    public static MatrixTheoryData<Rotation, bool, bool> Rotations { get; } = new(Enum.GetValues<Rotation>(), [false, true], [false, true]);

    [Theory]
    [InlineData(0)]
    [InlineData(100)]
    public async Task ReadAsync_FileGrows_GivesWhatWasAppended(long readAhead)
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = file.Follow(readAhead: readAhead);
        await GrowingFile.ExpectAsync(reader, "one\n");
        for (int i = 0; i < 50; i++)
        {
            Task<ReadResult> waiting = reader.ReadAsync(_stop).AsTask();
            if (i % 5 == 0)
            {
                await Task.Delay(10, _stop);
                Assert.False(waiting.IsCompleted);
            }

            file.Append($"line {i}\n");
            ReadResult result = await GrowingFile.Bounded(waiting);
            Assert.False(result.IsCompleted);
            reader.AdvanceTo(result.Buffer.Start);
            await GrowingFile.ExpectAsync(reader, $"line {i}\n");
        }

        Assert.Equal(file.Length, reader.Position);
    }

    [Theory]
    [InlineData(0)]
    [InlineData(-1)]
    [InlineData(0.5)]
    [InlineData(3e9)]
    public void FollowInterval_OutOfItsRange_Throws(double milliseconds)
        => Assert.Throws<ArgumentOutOfRangeException>(
            () => FilePipeReader.Create(_folder.File("log", []), new() { FollowInterval = TimeSpan.FromMilliseconds(milliseconds) }));

    /// <summary>Nor does its folder, at first. The next reader waits for the next file.</summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task WaitForFile_FileDoesNotExistYet_IsReadWhenItDoes(bool hasLastLines)
    {
        string folder = _folder.File("logs");
        string path = Path.Combine(folder, "log");
        FilePipeReaderOptions options = new() { Follow = true, WaitForFile = true, FollowInterval = TimeSpan.FromMilliseconds(5) };
        for (int i = 0; i < 2; i++)
        {
            Task<FilePipeReader> opening = hasLastLines ? FilePipeReader.OpenLastLinesAsync(path, 1, options, _stop).AsTask()
                : FilePipeReader.OpenAsync(path, options, _stop).AsTask();
            await Task.Delay(20, _stop);
            Assert.False(opening.IsCompleted);
            Directory.CreateDirectory(folder);
            await Task.Delay(20, _stop);
            Assert.False(opening.IsCompleted);
            File.WriteAllText(path + ".new", $"{i}\n");
            File.Move(path + ".new", path);
            await using FilePipeReader reader = await GrowingFile.Bounded(opening);
            await GrowingFile.ExpectAsync(reader, $"{i}\n");
            File.Move(path, path + i);
        }
    }

    /// <summary>It would wait for ever: the file that is missing is another one.</summary>
    [Fact]
    public async Task WaitForFile_AssemblyIsMissing_Throws()
        => await Assert.ThrowsAsync<FileNotFoundException>(async () => await GrowingFile.Bounded(AsyncOpening.OpenAsync<object>(
            fifo: null, _ => throw new FileNotFoundException("Could not load it.", "System.Missing, Version=10.0.0.0"), _ => { }, _stop,
            (_folder.File("log"), TimeSpan.FromMilliseconds(5))).AsTask()));

    /// <summary>
    /// The runtime names no file where a call on a handle says that there is none: on 9p, for one that was removed since it was opened.
    /// </summary>
    [Fact]
    public async Task WaitForFile_FileIsRemovedWhileItIsOpened_WaitsForTheNextOne()
    {
        object opened = new();
        int tries = 0;
        Assert.Same(opened, await GrowingFile.Bounded(AsyncOpening.OpenAsync(
            fifo: null, _ => tries++ == 0 ? throw new FileNotFoundException("It was removed.") : opened, _ => { }, _stop,
            (_folder.File("log"), TimeSpan.FromMilliseconds(5))).AsTask()));
    }

    [Fact]
    public async Task WaitForFile_CanceledOrCannotWait_Throws()
    {
        string path = _folder.File("log");
        FilePipeReaderOptions options = new() { Follow = true, WaitForFile = true, FollowInterval = TimeSpan.FromDays(1) };
        using CancellationTokenSource cancel = new();
        Task<FilePipeReader> opening = FilePipeReader.OpenAsync(path, options, cancel.Token).AsTask();
        Assert.False(opening.IsCompleted);
        await cancel.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => GrowingFile.Bounded(opening));

        // What is there and cannot be opened is reported at once.
        await Assert.ThrowsAsync<UnauthorizedAccessException>(async () => await FilePipeReader.OpenAsync(_folder.Path, options, _stop));
        File.WriteAllText(path, "");
        Assert.Throws<ArgumentException>("WaitForFile", () => FilePipeReader.Create(path, options));
        FilePipeReaderOptions alone = new() { WaitForFile = true };
        await Assert.ThrowsAsync<ArgumentException>("WaitForFile", async () => await FilePipeReader.OpenAsync(path, alone, _stop));
    }

    /// <summary>Its bytes there are not those that follow what was read.</summary>
    [Fact]
    public async Task ReadAsync_TruncatedFileThatGrowsPastTheOffsetAfterTheLook_CompletesWithoutItsBytes()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only.");
        string path = _folder.File("log", "one\n"u8.ToArray());
        int isTruncated = 0;
        long? Grow(int call)
        {
            if (Interlocked.Exchange(ref isTruncated, 0) == 1)
            {
                File.AppendAllText(path, "another line\n");
            }

            return null;
        }

        // FUSE has no watches, so a look finds what has happened.
        ScriptedCalls calls = new() { OnReadNoWait = Grow, OnRead = Grow, FileSystem = 0x65735546 };
        await using FilePipeReader reader = calls.Read(path, GrowingFile.Options());
        await GrowingFile.ExpectAsync(reader, "one\n");
        Task<ReadResult> reading = reader.ReadAsync(_stop).AsTask();
        await Eventually.TrueAsync(() => ((FollowedFile)reader.OpenedFile).IsWaiting);
        isTruncated = 1;
        await File.WriteAllBytesAsync(path, [], _stop);
        ReadResult end = await GrowingFile.Bounded(reading);
        Assert.Equal((true, 0), (end.IsCompleted, end.Buffer.Length));
    }

    /// <summary>As on SMB: this client has read already what another one has written, and knows the length of before.</summary>
    [Fact]
    public async Task ReadAsync_TheLengthThatTheSystemTellsLagsBehindWhatIsRead_GoesOnUntilItIsTruncated()
    {
        string path = _folder.File("log", "one\ntwo\n"u8.ToArray());
        int looks = 0;
        ScriptedCalls calls = new()
        {
            FileSystem = 0x65735546,
            LengthAtLook = () =>
            {
                looks++;
                return 4;
            },
        };
        await using FilePipeReader reader = calls.Read(path, GrowingFile.Options());
        await GrowingFile.ExpectAsync(reader, "one\ntwo\n");
        Task<ReadResult> reading = reader.ReadAsync(_stop).AsTask();
        await Eventually.TrueAsync(() => reading.IsCompleted || looks > 2);
        Assert.False(reading.IsCompleted);
        await File.AppendAllTextAsync(path, "three\n", _stop);
        ReadResult more = await GrowingFile.Bounded(reading);
        Assert.Equal((false, 6), (more.IsCompleted, more.Buffer.Length));
        reader.AdvanceTo(more.Buffer.End);
        await File.WriteAllBytesAsync(path, [], _stop);
        ReadResult end = await GrowingFile.Bounded(reader.ReadAsync(_stop));
        Assert.Equal((true, 0), (end.IsCompleted, end.Buffer.Length));
    }

    [Fact]
    public void Share_OfAFollowedFile_IsForEverythingUnlessItIsSet()
    {
        Assert.Equal(FileShare.ReadWrite | FileShare.Delete, new FilePipeReaderOptions { Follow = true }.Share);
        Assert.Equal(FileShare.Read, new FilePipeReaderOptions { Follow = true, Share = FileShare.Read }.Share);
        Assert.Equal(FileShare.Read, new FilePipeReaderOptions().Share);
    }

    [Theory]
    [MemberData(nameof(Rotations))]
    public async Task ReadAsync_FileIsRotated_CompletesAfterEveryByte(Rotation rotation, bool isAsleep, bool hasUnread)
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = file.Follow();
        await GrowingFile.ExpectAsync(reader, "one\n");

        // Asleep: nobody waits at the end while it happens.
        Task<ReadResult>? waiting = isAsleep ? null : await GrowingFile.WaitAtEndAsync(reader);
        hasUnread &= rotation != Rotation.Truncate;
        if (hasUnread)
        {
            file.Append("two\n");
        }

        await RotateAsync(file, rotation);
        string expected = hasUnread ? "two\n" : "";
        string rest = "";
        if (waiting is not null)
        {
            ReadResult result = await GrowingFile.Bounded(waiting);
            rest = Encoding.UTF8.GetString(result.Buffer);
            reader.AdvanceTo(result.Buffer.End);
            Assert.True(result.IsCompleted || !result.Buffer.IsEmpty);
            if (result.IsCompleted)
            {
                Assert.Equal(expected, rest);
                return;
            }
        }

        rest += await GrowingFile.ReadToEndAsync(reader);
        Assert.Equal(expected, rest);

        // The end that was told is told again.
        Assert.True((await GrowingFile.Bounded(reader.ReadAsync(_stop))).IsCompleted);
    }

    [Fact]
    public async Task ReadAsync_WriterGoesOnAfterTheRotation_GivesThatToo()
    {
        // All at once, as each of them waits for the quiet after the rotation. Windows keeps the name of a deleted file until its writer
        // has closed it.
        Rotation[] rotations = OperatingSystem.IsWindows() ? [Rotation.Rename] : [Rotation.Rename, Rotation.Delete, Rotation.ReplaceEmpty];
        await Task.WhenAll(rotations.Select(async rotation =>
        {
            Directory.CreateDirectory(_folder.File($"{rotation}"));
            using GrowingFile file = new(_folder.File($"{rotation}/log"), "one\n");
            await using FilePipeReader reader = FilePipeReader.Create(file.Path, new() { Follow = true, FollowInterval = s_grace });
            await GrowingFile.ExpectAsync(reader, "one\n");
            Task<string> rest = GrowingFile.ReadToEndAsync(reader);
            await RotateAsync(file, rotation, reopens: false);
            for (int i = 0; i < 5; i++)
            {
                await Task.Delay(20, _stop);
                file.Append("more\n");
            }

            Assert.Equal("more\nmore\nmore\nmore\nmore\n", await rest);
        }));
    }

    [Fact]
    public async Task ReadAsync_RotatedTwiceInARow_CompletesOnceAndGoesOnWithTheLast()
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = file.Follow();
        await GrowingFile.ExpectAsync(reader, "one\n");
        Task<string> rest = GrowingFile.ReadToEndAsync(reader);
        File.Move(file.Path, file.Path + ".1");
        file.Reopen();
        file.Append("two\n");
        File.Move(file.Path + ".1", file.Path + ".2");
        File.Move(file.Path, file.Path + ".1");
        file.Reopen();
        file.Append("three\n");
        Assert.Equal("", await rest);
        Assert.True(FileIdentity.TryGet(file.Path + ".2", out FileIdentity first));
        Assert.Equal(reader.Identity, first);
        await using FilePipeReader last = file.Follow();
        await GrowingFile.ExpectAsync(last, "three\n");
    }

    [Fact]
    public async Task ReadAsync_NameComesBack_GoesOn()
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = FilePipeReader.Create(file.Path, new() { Follow = true, FollowInterval = s_grace });
        await GrowingFile.ExpectAsync(reader, "one\n");
        Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
        File.Move(file.Path, file.Path + ".1");
        await Task.Delay(100, _stop);
        File.Move(file.Path + ".1", file.Path);
        await Task.Delay(2 * s_grace, _stop);
        Assert.False(waiting.IsCompleted);
        file.Append("two\n");
        Assert.False((await GrowingFile.Bounded(waiting)).IsCompleted);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task ReadAsync_FolderLosesItsName_Completes(bool isRemoved)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Windows refuses it while a file in the folder is open.");
        string folder = _folder.File("logs/today");
        Directory.CreateDirectory(folder);
        using GrowingFile file = new(Path.Combine(folder, "log"), "one\n");
        await using FilePipeReader reader = file.Follow();
        await GrowingFile.ExpectAsync(reader, "one\n");
        Task<string> rest = GrowingFile.ReadToEndAsync(reader);
        await Task.Delay(20, _stop);
        if (isRemoved)
        {
            Directory.Delete(folder, recursive: true);
        }
        else
        {
            // Nothing tells of that but the name.
            Directory.Move(_folder.File("logs"), _folder.File("other"));
        }

        Assert.Equal("", await rest);
    }

    [Fact]
    public async Task ReadAsync_LinkLeadsElsewhere_Completes()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Links take a privilege there.");
        using GrowingFile file = new(_folder.File("log-1"), "one\n");
        string link = _folder.File("log");
        File.CreateSymbolicLink(link, file.Path);
        await using FilePipeReader reader = FilePipeReader.Create(link, GrowingFile.Options());
        await GrowingFile.ExpectAsync(reader, "one\n");
        Task<string> rest = GrowingFile.ReadToEndAsync(reader);
        File.CreateSymbolicLink(_folder.File("new"), _folder.File("log-2", "two\n"u8.ToArray()));
        File.Move(_folder.File("new"), link, overwrite: true);
        Assert.Equal("", await rest);
    }

    [Fact]
    public async Task ReadAsync_OffsetIsBehindTheEnd_CompletesAtOnce()
    {
        using GrowingFile file = new(_folder.File("log"), "short");
        await using FilePipeReader reader = file.Follow(offset: 1000);
        Assert.Equal("", await GrowingFile.ReadToEndAsync(reader));
    }

    [Fact]
    public async Task ReadAsync_LengthIsReached_Completes()
    {
        using GrowingFile file = new(_folder.File("log"), "12");
        await using FilePipeReader reader = file.Follow(length: 5);
        Task<string> rest = GrowingFile.ReadToEndAsync(reader);
        file.Append("34");
        await Task.Delay(20, _stop);
        file.Append("567");
        Assert.Equal("12345", await rest);
    }

    [Theory]
    [InlineData(0, false)]
    [InlineData(100, false)]
    [InlineData(0, true)]
    [InlineData(100, true)]
    public async Task ReadAsync_CanceledAtTheEnd_EndsAtOnceAndLosesNothing(long readAhead, bool byToken)
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = file.Follow(readAhead: readAhead);
        await GrowingFile.ExpectAsync(reader, "one\n");
        for (int i = 0; i < 20; i++)
        {
            using CancellationTokenSource source = new();
            Task<ReadResult> waiting = i % 4 == 0
                ? await GrowingFile.WaitAtEndUntilAsync(reader, source.Token)
                : reader.ReadAsync(source.Token).AsTask();
            if (byToken)
            {
                await source.CancelAsync();
                await Assert.ThrowsAnyAsync<OperationCanceledException>(() => GrowingFile.Bounded(waiting));
            }
            else
            {
                reader.CancelPendingRead();
                ReadResult result = await GrowingFile.Bounded(waiting);
                Assert.True(result.IsCanceled && !result.IsCompleted);
                reader.AdvanceTo(result.Buffer.Start);
            }

            file.Append($"{i}\n");
            await GrowingFile.ExpectAsync(reader, $"{i}\n");
        }
    }

    [Theory]
    [InlineData(0)]
    [InlineData(100)]
    public async Task CompleteAsync_AtTheEnd_EndsTheReadAndClosesTheFile(long readAhead)
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        CheckedPool pool = new();
        FilePipeReader reader = FilePipeReader.Create(
            file.Path, new() { Follow = true, FollowInterval = GrowingFile.Interval, Pool = pool, PauseReadAheadThreshold = readAhead });
        await GrowingFile.ExpectAsync(reader, "one\n");
        Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
        await GrowingFile.Bounded(reader.CompleteAsync().AsTask());
        await Assert.ThrowsAsync<InvalidOperationException>(() => GrowingFile.Bounded(waiting));
        await Eventually.TrueAsync(() => pool.Rented == 0);
        file.Dispose();
        await Eventually.FreeAsync(file.Path);
    }

    [Fact]
    public async Task ReadAtLeastAsync_LessIsThere_WaitsForTheRest()
    {
        using GrowingFile file = new(_folder.File("log"), "12");
        await using FilePipeReader reader = file.Follow();
        Task<ReadResult> waiting = reader.ReadAtLeastAsync(6, _stop).AsTask();
        for (int i = 3; i <= 6; i++)
        {
            await Task.Delay(10, _stop);
            Assert.False(waiting.IsCompleted);
            file.Append($"{i}");
        }

        Assert.Equal("123456", Encoding.UTF8.GetString((await GrowingFile.Bounded(waiting)).Buffer));
    }

    [Fact]
    public async Task CopyToAsync_FileGrowsAndIsRenamed_CopiesEverythingAndEnds()
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = file.Follow();
        Pipe pipe = new();
        Task copying = reader.CopyToAsync(pipe.Writer, _stop);
        await GrowingFile.ExpectAsync(pipe.Reader, "one\n");
        file.Append("two\n");
        await GrowingFile.ExpectAsync(pipe.Reader, "two\n");
        Assert.False(copying.IsCompleted);
        file.Append("three\n");
        File.Move(file.Path, file.Path + ".1");
        await GrowingFile.Bounded(copying);
        await GrowingFile.ExpectAsync(pipe.Reader, "three\n");
        Assert.Equal(file.Length, reader.Position);
    }

    [Fact]
    public async Task CopyToAsync_ToAFileAndCanceled_LosesNothing()
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = file.Follow();
        string destination = _folder.File("copy");
        FilePipeWriter writer = FilePipeWriter.Create(
            destination, new() { FlushGuarantee = FlushGuarantee.Written, Share = FileShare.ReadWrite });
        Task copying = reader.CopyToAsync(writer, _stop);
        file.Append("two\n");
        await Eventually.TrueAsync(() => new FileInfo(destination).Length == 8);
        reader.CancelPendingRead();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => GrowingFile.Bounded(copying));
        file.Append("three\n");
        using CancellationTokenSource source = new();
        copying = reader.CopyToAsync(writer, source.Token);
        await Eventually.TrueAsync(() => new FileInfo(destination).Length == 14);
        await source.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => GrowingFile.Bounded(copying));
        file.Append("four\n");
        await GrowingFile.ExpectAsync(reader, "four\n");
        await writer.CompleteAsync();
        Assert.Equal("one\ntwo\nthree\n", await File.ReadAllTextAsync(destination, _stop));
    }

    [Fact]
    public async Task AsStream_FileGrows_ReadsOn()
    {
        using GrowingFile file = new(_folder.File("log"), "one");
        await using Stream stream = file.Follow().AsStream();
        byte[] bytes = new byte[10];
        Assert.Equal(3, await stream.ReadAtLeastAsync(bytes, 3, cancellationToken: _stop));
        Task<int> waiting = stream.ReadAsync(bytes, _stop).AsTask();
        await Task.Delay(20, _stop);
        Assert.False(waiting.IsCompleted);
        file.Append("two");
        Assert.Equal(3, await GrowingFile.Bounded(waiting));
        File.Move(file.Path, file.Path + ".1");
        Assert.Equal(0, await GrowingFile.Bounded(stream.ReadAsync(bytes, _stop)));
    }

    [Fact]
    public async Task Create_OfAHandle_FollowsGrowthAndACutAlone()
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = FilePipeReader.Create(
            File.OpenHandle(file.Path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete), GrowingFile.Options());
        await GrowingFile.ExpectAsync(reader, "one\n");
        Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
        File.Move(file.Path, file.Path + ".1");
        await Task.Delay(300, _stop);
        Assert.False(waiting.IsCompleted);
        file.Append("two\n");
        ReadResult result = await GrowingFile.Bounded(waiting);
        Assert.Equal("two\n", Encoding.UTF8.GetString(result.Buffer));
        reader.AdvanceTo(result.Buffer.End);
        waiting = await GrowingFile.WaitAtEndAsync(reader);
        file.Cut(1);
        Assert.True((await GrowingFile.Bounded(waiting)).IsCompleted);
    }

    [Theory]
    [InlineData("/proc/self/status")]
    [InlineData("/dev/null")]
    [InlineData("/sys/kernel/mm/transparent_hugepage/enabled")]
    public async Task ReadAsync_FileWithAnEndOfItsOwn_CompletesThere(string path)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows() || !File.Exists(path), $"There is no {path}, or what Wine makes of it.");
        await using FilePipeReader reader = FilePipeReader.Create(path, GrowingFile.Options());
        _ = await GrowingFile.ReadToEndAsync(reader);
    }

    [Fact]
    public async Task ReadAsync_Fifo_CompletesWithItsWriter()
    {
        Fifo fifo = Fifo.Create(_folder);
        await using FilePipeReader reader = FilePipeReader.Create(fifo.Path, GrowingFile.Options());
        fifo.Write("one"u8);
        await GrowingFile.ExpectAsync(reader, "one");
        fifo.Dispose();
        Assert.Equal("", await GrowingFile.ReadToEndAsync(reader));
    }

    [Fact]
    public async Task ReadAsync_TwoReadersOfOneFile_BothGetEverything()
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader first = FilePipeReader.Create(
            file.Path, new() { Follow = true, FollowInterval = GrowingFile.LongInterval });
        await using FilePipeReader second = FilePipeReader.Create(
            file.Path, new() { Follow = true, FollowInterval = GrowingFile.LongInterval });
        await GrowingFile.ExpectAsync(first, "one\n");
        await GrowingFile.ExpectAsync(second, "one\n");
        Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(first);
        Task<ReadResult> waitingToo = await GrowingFile.WaitAtEndAsync(second);
        file.Append("two\n");
        Assert.Equal(4, (await GrowingFile.Bounded(waiting)).Buffer.Length);
        Assert.Equal(4, (await GrowingFile.Bounded(waitingToo)).Buffer.Length);

        // They share a watch, which stays while one of them does.
        await first.CompleteAsync();
        await GrowingFile.ExpectAsync(second, "two\n");
        waiting = await GrowingFile.WaitAtEndAsync(second);
        file.Append("three\n");
        Assert.Equal(6, (await GrowingFile.Bounded(waiting)).Buffer.Length);
    }

    [Fact]
    public async Task ReadAsync_NobodyWaitsWhileItGrows_TheNextReadGivesItAndWaitsAgain()
    {
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = FilePipeReader.Create(
            file.Path, new() { Follow = true, FollowInterval = GrowingFile.LongInterval });
        await GrowingFile.ExpectAsync(reader, "one\n");
        for (int i = 0; i < 10; i++)
        {
            // The watch has told of the first byte, and there is none until the next wait.
            Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
            file.Append("a");
            ReadResult result = await GrowingFile.Bounded(waiting);
            reader.AdvanceTo(result.Buffer.End);
            file.Append("b");
            file.Append("c");
            await Task.Delay(5, _stop);
            await GrowingFile.ExpectAsync(reader, "bc");
        }
    }

    [Fact]
    public async Task ReadAsync_AppendedWhileTheWaitBegins_IsNotMissed()
    {
        int rounds = OperatingSystem.IsLinux() ? 3000 : 50;
        using GrowingFile file = new(_folder.File("log"));
        await using FilePipeReader reader = FilePipeReader.Create(
            file.Path, new() { Follow = true, FollowInterval = GrowingFile.LongInterval });
        Random random = new(1);
        using SemaphoreSlim begins = new(0);
        using SemaphoreSlim appended = new(0);
        int spins = 0;
        Task appending = Task.Run(
            async () =>
            {
                for (int i = 0; i < rounds; i++)
                {
                    await begins.WaitAsync(_stop);
                    Thread.SpinWait(Volatile.Read(ref spins));
                    file.Append("x");
                    appended.Release();
                }
            },
            _stop);
        for (int i = 0; i < rounds; i++)
        {
            Volatile.Write(ref spins, random.Next(2000));
            begins.Release();
            Thread.SpinWait(random.Next(2000));
            await GrowingFile.ExpectAsync(reader, "x");
            Assert.True(await appended.WaitAsync(Eventually.Limit, _stop));
        }

        await GrowingFile.Bounded(appending);
        Assert.Equal(rounds, reader.Position);
    }

    [Fact]
    public async Task QueueOverflow_EverybodyWhoWaitsReads()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only: inotify(7).");
        ScriptedCalls calls = new();
        string path = _folder.File("log", "one\n"u8.ToArray());
        await using FilePipeReader reader = calls.Read(path, new() { Follow = true, FollowInterval = TimeSpan.FromDays(1) });
        await GrowingFile.ExpectAsync(reader, "one\n");
        Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
        int reads = calls.Reads + calls.ReadsNoWait;
        Tell(-1, Libc.IN_Q_OVERFLOW);
        await Eventually.TrueAsync(() => calls.Reads + calls.ReadsNoWait > reads);
        Assert.False(waiting.IsCompleted);
        await File.AppendAllTextAsync(path, "two\n", _stop);
        Assert.Equal(4, (await GrowingFile.Bounded(waiting)).Buffer.Length);
    }

    [Fact]
    public async Task WatchIsTakenAway_TheFileIsWatchedAnew()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only: inotify(7).");
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await using FilePipeReader reader = file.Follow();
        await GrowingFile.ExpectAsync(reader, "one\n");
        Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
        for (int watch = 0; watch < 100_000; watch++)
        {
            // The kernel says so when a file system is unmounted; which number it was nobody here knows.
            Tell(watch, Libc.IN_IGNORED);
        }

        file.Append("two\n");
        Assert.Equal(4, (await GrowingFile.Bounded(waiting)).Buffer.Length);
    }

    [Fact]
    public async Task Complete_OfTheLastFollower_LeavesNoWatchAndNoFile()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only: it looks into /proc.");
        for (int round = 0; round < 20; round++)
        {
            using GrowingFile file = new(_folder.File($"log{round}"), "one\n");
            FilePipeReader[] readers = [.. Enumerable.Range(0, 5).Select(_ => file.Follow())];
            await Task.WhenAll(readers.Select(static async reader =>
            {
                await GrowingFile.ExpectAsync(reader, "one\n");
                _ = await GrowingFile.WaitAtEndAsync(reader);
            }));

            // They wait at the end now or in a moment.
            await Eventually.TrueAsync(() => OpenHandles.Instances() == 1);
            foreach (FilePipeReader reader in readers)
            {
                await reader.CompleteAsync();
            }
        }

        await Eventually.TrueAsync(() => OpenHandles.Watches() == 0 && OpenHandles.Below(_folder.Path) == 0);
    }

    [Theory]
    [InlineData(0)]
    [InlineData(100)]
    public async Task Reader_IsForgotten_ItsFileIsClosedAndWatchedNoMore(long readAhead)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only: it looks into /proc.");
        using GrowingFile file = new(_folder.File("log"), "one\n");
        await ForgetAsync(file, readAhead);
        await Eventually.TrueAsync(() =>
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            return OpenHandles.Watches() == 0 && OpenHandles.Of(file.Path) == 1;
        });

        static async Task ForgetAsync(GrowingFile file, long readAhead)
        {
            FilePipeReader reader = file.Follow(readAhead: readAhead);
            await GrowingFile.ExpectAsync(reader, "one\n");
            Task<ReadResult> waiting = await GrowingFile.WaitAtEndAsync(reader);
            reader.CancelPendingRead();
            Assert.True((await waiting).IsCanceled);
        }
    }

    [Fact]
    public async Task ThousandFiles_EachGetsItsOwnLineAndNoThread()
    {
        const int Files = 1000;
        GrowingFile[] files = [.. Enumerable.Range(0, Files).Select(i => new GrowingFile(_folder.File($"log{i}")))];
        FilePipeReader[] readers = [.. files.Select(static file => file.Follow())];
        Task<ReadResult>[] waiting = [.. readers.Select(reader => reader.ReadAsync(_stop).AsTask())];
        await Task.Delay(100, _stop);
        Assert.DoesNotContain(waiting, static task => task.IsCompleted);
        Assert.InRange(System.Diagnostics.Process.GetCurrentProcess().Threads.Count, 1, Files - 1);
        for (int i = 0; i < Files; i++)
        {
            files[i].Append($"{i}");
        }

        for (int i = 0; i < Files; i++)
        {
            Assert.Equal($"{i}", Encoding.UTF8.GetString((await GrowingFile.Bounded(waiting[i])).Buffer));
            await readers[i].CompleteAsync();
            files[i].Dispose();
        }
    }

    [Fact]
    public Task Follow_CallsAreRefused_TheOthersFindEverything()
    {
        string[] injections =
        [
            "inotify_add_watch:error=ENOSPC", "inotify_init1:error=EMFILE", "inotify_init1:error=EMFILE:when=1..2",
            "inotify_add_watch:error=ENOENT", "statx:error=EPERM", "statx:error=ENOSYS",
        ];
        return Task.WhenAll(injections.Select(injection => FollowUnderAsync(injection, lines: 3, ends: true)));
    }

    [Fact]
    public Task Follow_NameDoesNotAnswer_LinesComeAllTheSame()

        // The first two are for the open file: its properties, and its length at the end.
        => FollowUnderAsync("statx:delay_enter=600000000:when=3+", lines: 100, ends: false);

    [Fact]
    public async Task Follow_NoDescriptorIsLeft_GoesOnWhenThereAre()
    {
        ChildProcess.SkipUnlessLinux("prlimit");
        string path = _folder.File("log", "one\n"u8.ToArray());
        (int status, string output, string error) = await ChildProcess.RunAsync(
            $"prlimit --nofile=200 {ChildProcess.Command("starved", path)}");
        Assert.True(output == "one\nwaits\ntwo\ncompleted\n" && status == 0, $"{status} {output} {error}");
    }

    [Fact]
    public async Task Follow_NoDescriptorIsLeftAtOpening_ThrowsAndLeavesTheHandleOpen()
    {
        // The runtime says OutOfMemoryException where it has no descriptor for its first timer.
        ChildProcess.SkipUnlessLinux("prlimit");
        string path = _folder.File("log", "one\n"u8.ToArray());
        (int status, string output, string error) = await ChildProcess.RunAsync(
            $"prlimit --nofile=200 {ChildProcess.Command("unfollowed", path)}");
        Assert.True(status == 0 && output.StartsWith("IOException: ", StringComparison.Ordinal)
            && output.EndsWith($"'{path}'\none\n", StringComparison.Ordinal), $"{status} {output} {error}");
    }

    /// <summary>Follows a file in another process, to which the system answers that.</summary>
    private async Task FollowUnderAsync(string injection, int lines, bool ends)
    {
        ChildProcess.SkipUnlessLinux("strace");
        string path = _folder.File(Path.GetRandomFileName(), "one\n"u8.ToArray());
        string trace = path + ".trace";
        using System.Diagnostics.Process child = ChildProcess.Start(
            $"{ChildProcess.Strace} -o '{trace}' -e trace=inotify_init1,inotify_add_watch,statx -e inject={injection} "
            + $"{ChildProcess.Command("follow", path)}");
        Task<string> error = child.StandardError.ReadToEndAsync(_stop);
        try
        {
            string? line = await GrowingFile.Bounded(child.StandardOutput.ReadLineAsync(_stop));
            Assert.SkipWhen(line is null && (await GrowingFile.Bounded(error)).Contains("PTRACE", StringComparison.Ordinal),
                "strace may not trace here.");
            Assert.True(line == "one", $"{injection}: {line}");
            for (int i = 0; i < lines; i++)
            {
                await Task.Delay(100 / lines * 3, _stop);
                await File.AppendAllTextAsync(path, $"{i}\n", _stop);
                Assert.Equal($"{i}", await GrowingFile.Bounded(child.StandardOutput.ReadLineAsync(_stop)));
            }

            if (ends)
            {
                File.Move(path, path + ".1");
                Assert.Equal("completed", await GrowingFile.Bounded(child.StandardOutput.ReadLineAsync(_stop)));
                await GrowingFile.Bounded(child.WaitForExitAsync(_stop));
                Assert.Contains("INJECTED", await File.ReadAllTextAsync(trace, _stop), StringComparison.Ordinal);
            }
        }
        finally
        {
            child.Kill(entireProcessTree: true);
        }
    }

    private static void Tell(int watch, uint mask)
    {
        Libc.WatchEvent happened = new() { Watch = watch, Mask = mask };
        FileWatches.Take(MemoryMarshal.AsBytes(new ReadOnlySpan<Libc.WatchEvent>(in happened)), []);
    }

    private async Task RotateAsync(GrowingFile file, Rotation rotation, bool reopens = true)
    {
        switch (rotation)
        {
            case Rotation.Rename:
                File.Move(file.Path, file.Path + ".1");
                break;
            case Rotation.Delete:
                GrowingFile.Delete(file.Path);
                if (OperatingSystem.IsWindows() && reopens)
                {
                    file.Dispose();
                }

                break;
            case Rotation.Replace or Rotation.ReplaceEmpty:
                Assert.SkipWhen(OperatingSystem.IsWindows(), "Windows refuses to rename over a file that is open.");
                await File.WriteAllTextAsync(file.Path + ".new", rotation == Rotation.Replace ? "another\n" : "", _stop);
                File.Move(file.Path + ".new", file.Path, overwrite: true);
                break;
            case Rotation.Create:
                File.Move(file.Path, file.Path + ".1");
                file.Reopen();
                file.Append("another\n");
                break;
            case Rotation.Truncate:
                file.Cut(0);
                break;
        }
    }
}
