using System.IO.Pipes;

namespace FilePipelines.Tests;

/// <summary>
/// Many readers and writers at once, of files and of pipes, on the back end that this system has, with cancellations at any moment, and on
/// Linux once more with calls that are short, interrupted or would wait: nothing is lost, nothing is leaked. Two seconds each, or as long
/// as PIPELINES_FILE_STRESS_SECONDS says.
/// </summary>
[Collection("whole process")]
[Trait("Category", StressTime.Category)]
public sealed partial class StressTests : FileTests
{
    private const int Workers = 64;

    private static readonly FilePipeBackend s_backend = OperatingSystem.IsWindows()
        ? FilePipeBackend.Overlapped
        : FilePipeBackend.UnixThreads;

    private readonly CheckedPool _pool = new();

    // Guards _watched and _watchedLimit.
    private readonly Lock _gate = new();
    private readonly List<WeakReference> _watched = [];
    private int _watchedLimit = 10_000;

    private bool _isScripted;
    private long _end;
    private volatile bool _hasFailed;
    private long _files;
    private long _pipes;
    private long _bytes;
    private long _cancellations;

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task ManyReadersAndWriters_CanceledAtAnyMoment_LoseNothingAndLeakNothing(bool isScripted)
    {
        Assert.SkipWhen(isScripted && !OperatingSystem.IsLinux(), "It scripts system calls of Linux.");
        _isScripted = isScripted;
        double seconds = StressTime.Seconds;
        _end = Stopwatch.GetTimestamp() + (long)(seconds * Stopwatch.Frequency);
        Task[] workers = [.. Enumerable.Range(0, Workers).Select(worker => Task.Run(() => WorkAsync(worker), _stop))];
        await StressTime.BoundedAsync(Task.WhenAll(workers));
        TestContext.Current.SendDiagnosticMessage(
            $"{s_backend}, {Workers} workers, {seconds} s: {_files} files, {_pipes} pipes, {_bytes} bytes, {_cancellations} cancellations");
        Assert.True(_cancellations > 0);
        Assert.True(_pipes > 0);
        await Eventually.TrueAsync(() => OpenFiles() == 0);
        await Eventually.TrueAsync(() => _pool.Rented == 0);
        _pool.AssertReturned();
        await Eventually.TrueAsync(() => Alive() == 0);
    }

    private async Task WorkAsync(int worker)
    {
        Random random = new(worker);
        try
        {
            do
            {
                await (random.Next(8) == 0 ? PipeAsync(random) : FileAsync(_folder.File($"f{worker}"), random));
            }
            while (Stopwatch.GetTimestamp() < _end && !_hasFailed);
        }
        catch
        {
            _hasFailed = true;
            throw;
        }
    }

    /// <summary>A file is written, read, and free again.</summary>
    private async Task FileAsync(string path, Random random)
    {
        int length = random.Next(3) == 0 ? random.Next(2_000_000) : random.Next(100_000);
        FilePipeWriter writer = OpenWriter(path, length, random);
        await FeedAsync(writer, length, random);
        await writer.CompleteAsync();
        await DrainAsync(OpenReader(path, random), length, mayEndEarly: true, random);
        await Eventually.FreeAsync(path);
        Interlocked.Add(ref _files, 2);
    }

    /// <summary>One end writes while the other reads, where every wait is a real one.</summary>
    private async Task PipeAsync(Random random)
    {
        int length = random.Next(200_000);
        (PipeReader reader, PipeWriter writer) = OpenPipe(random);
        bool mayEndEarly = reader is FilePipeReader && random.Next(3) == 0;
        Random other = new(random.Next());
        Task feeding = Task.Run(
            async () =>
            {
                try
                {
                    await FeedAsync(writer, length, other);
                    await writer.CompleteAsync();
                }
                catch (IOException) when (mayEndEarly)
                {
                    _ = await Record.ExceptionAsync(async () => await writer.CompleteAsync());
                }
            },
            _stop);
        Task draining = DrainAsync(reader, length, mayEndEarly, random, writer);

        // What the writer has failed with comes before what the reader misses: a writer that fails is forgotten, and a finalizer closes its
        // side.
        if (await Task.WhenAny(feeding, draining) == draining && draining.IsFaulted)
        {
            _ = await Task.WhenAny(feeding, Task.Delay(TimeSpan.FromSeconds(5), _stop));
        }

        if (feeding.IsFaulted)
        {
            await feeding;
        }

        await draining;
        await feeding;
        Interlocked.Increment(ref _pipes);
    }

    private FilePipeWriter OpenWriter(string path, int length, Random random)
    {
        bool isByHandle = random.Next(4) == 0;
        FilePipeWriterOptions options = new()
        {
            PauseWriterThreshold = random.Next(2) * 50_000,

            // The device is slow: few syncs, and of few bytes.
            FlushGuarantee = random.Next(20) == 0 && length < 50_000 ? FlushGuarantee.Durable
                : random.Next(2) == 0 ? FlushGuarantee.WriteBehind : FlushGuarantee.Written,
            Share = isByHandle ? FileShare.Read : FileShare.None,
            MinimumBufferSize = 1 + random.Next(10_000),
            Pool = random.Next(8) == 0 ? _pool : null,
            Backend = s_backend,
        };
        return Watch(_isScripted ? Calls(random).Write(path, options) : isByHandle
            ? FilePipeWriter.Create(OpenHandle(path, FileMode.Create, FileAccess.Write), options)
            : FilePipeWriter.Create(path, options));
    }

    private FilePipeReader OpenReader(string path, Random random)
    {
        bool isByHandle = random.Next(4) == 0;
        FilePipeReaderOptions options = new()
        {
            BufferSize = 1 + random.Next(100_000),
            PauseReadAheadThreshold = random.Next(2) * 300_000,
            Share = isByHandle ? FileShare.Read : FileShare.None,
            Pool = random.Next(8) == 0 ? _pool : null,
            Backend = s_backend,
        };
        if (_isScripted)
        {
            return Watch(Calls(random).Read(path, options));
        }

        if (isByHandle)
        {
            return Watch(FilePipeReader.Create(OpenHandle(path, FileMode.Open, FileAccess.Read), options));
        }

        if (!OperatingSystem.IsWindows() && random.Next(3) == 0)
        {
            // As with a cold page cache and a slow disk, or nearly every read would finish at once.
            ScriptedCalls calls = new()
            {
                OnReadNoWait = static call => call % 3 == 0 ? null : -Libc.EAGAIN,
                OnRead = static call =>
                {
                    Thread.Sleep(call % 2);
                    return null;
                },
            };
            return Watch(calls.Read(path, options));
        }

        return Watch(FilePipeReader.Create(path, options));
    }

    /// <summary>Now and then a call that is interrupted, short, or would wait.</summary>
    private static ScriptedCalls Calls(Random random)
    {
        // Never every call: a FIFO that poll(2) calls ready is asked again until it answers.
        int every = 2 + random.Next(20);
        long? Answer(int call) => call % 7 == 0 ? -Libc.EINTR : call % 3 == 0 ? 1 + (call * 37 % 5000) : null;
        return new() { OnReadNoWait = call => call % every == 0 ? -Libc.EAGAIN : Answer(call), OnRead = Answer, OnWrite = Answer };
    }

    /// <summary>The back end holds the handle, so the handle shows whether the back end is held.</summary>
    private SafeFileHandle OpenHandle(string path, FileMode mode, FileAccess access)
        => Watch(OperatingSystem.IsWindows()
            ? File.OpenHandle(path, mode, access, FileShare.None, FileOptions.Asynchronous)
            : File.OpenHandle(path, mode, access, FileShare.None));

    /// <summary>A FIFO with both ends ours; on Windows a named pipe, whose server is the runtime's.</summary>
    private (PipeReader Reader, PipeWriter Writer) OpenPipe(Random random)
    {
        FilePipeReaderOptions readerOptions =
            new() { BufferSize = 1 + random.Next(20_000), PauseReadAheadThreshold = random.Next(2) * 30_000, Share = FileShare.ReadWrite };
        FilePipeWriterOptions writerOptions =
            new() { Mode = FileMode.Open, PauseWriterThreshold = random.Next(2) * 20_000, Share = FileShare.ReadWrite };
        if (OperatingSystem.IsWindows())
        {
            bool isReader = random.Next(2) == 0;
            string name = $"{Path.GetFileName(_folder.Path)}-{Guid.NewGuid():N}";
            string pipe = $@"\\.\pipe\{name}";
            NamedPipeServerStream server = new(name, isReader ? PipeDirection.Out : PipeDirection.In, 1, PipeTransmissionMode.Byte,
                System.IO.Pipes.PipeOptions.Asynchronous, 4096, 4096);
            (PipeReader, PipeWriter) ends = isReader
                ? (Watch(FilePipeReader.Create(pipe, readerOptions)), PipeWriter.Create(server))
                : (PipeReader.Create(server), Watch(FilePipeWriter.Create(pipe, writerOptions)));
            server.WaitForConnection();
            return ends;
        }

        string path = _folder.File(Guid.NewGuid().ToString("N"));
        Fifo.MakeAt(path);

        // The opening of one end waits for the other; of both, for nothing.
        using SafeFileHandle both = Fifo.OpenBothWays(path);
        FilePipeReader reader = Watch(_isScripted ? Calls(random).Read(path, readerOptions) : FilePipeReader.Create(path, readerOptions));
        FilePipeWriter writer = Watch(_isScripted ? Calls(random).Write(path, writerOptions) : FilePipeWriter.Create(path, writerOptions));
        File.Delete(path);
        return (reader, writer);
    }

    private async Task FeedAsync(PipeWriter writer, int length, Random random)
    {
        Assert.True(writer is not FilePipeWriter ours || ours.Backend == s_backend);
        for (int index = 0; index < length;)
        {
            int size = Math.Min(1 + random.Next(40_000), length - index);
            writer.Put(size, index);
            index += size;
            Interlocked.Add(ref _bytes, size);
            if (writer is not FilePipeWriter)
            {
                await writer.FlushAsync(_stop);
            }
            else if (await CanceledAsync(writer.FlushAsync, writer.CancelPendingFlush, random) is not { IsCanceled: false })
            {
                Interlocked.Increment(ref _cancellations);
            }
        }
    }

    private async Task DrainAsync(PipeReader reader, int length, bool mayEndEarly, Random random, PipeWriter? writer = null)
    {
        Assert.True(reader is not FilePipeReader ours || ours.Backend == s_backend);
        long index = 0;
        long stopAt = mayEndEarly && random.Next(4) == 0 ? random.Next(length + 1) : long.MaxValue;
        while (index < stopAt)
        {
            if (mayEndEarly && random.Next(60) == 0)
            {
                // In the middle of a read.
                ValueTask<ReadResult> abandoned = reader.ReadAsync(_stop);
                reader.Complete();
                try
                {
                    // What it may have returned stays as it is, unless a caller's pool has got it back.
                    ReadOnlySequence<byte> held = (await abandoned).Buffer;
                    foreach (ReadOnlyMemory<byte> piece in held)
                    {
                        Assert.Equal(-1, Pattern.FirstDifference(piece.Span, index));
                        index += piece.Length;
                    }

                    Assert.Throws<InvalidOperationException>(() => reader.AdvanceTo(held.End));
                }
                catch (Exception e) when (e is InvalidOperationException or ArgumentOutOfRangeException)
                {
                }

                Interlocked.Increment(ref _cancellations);
                return;
            }

            if (reader is FilePipeReader && random.Next(50) == 0)
            {
                // What it copies before it is canceled is in the pipe, and is consumed.
                Pipe copy = new(new System.IO.Pipelines.PipeOptions(pauseWriterThreshold: 0));
                bool? isCopied = await CanceledAsync(
                    async token =>
                    {
                        await reader.CopyToAsync(copy.Writer, token);
                        return true;
                    },
                    reader.CancelPendingRead,
                    random);
                await copy.Writer.CompleteAsync();
                index = await PatternFile.ReadToEndAsync(copy.Reader, index);
                if (isCopied == true)
                {
                    Assert.Equal(length, index);
                    break;
                }

                Interlocked.Increment(ref _cancellations);
                continue;
            }

            int least = random.Next(4) == 0 ? random.Next(50_000) : 0;
            ReadResult? read = reader is FilePipeReader
                ? await CanceledAsync(token => reader.ReadAtLeastAsync(least, token), reader.CancelPendingRead, random)
                : await reader.ReadAsync(_stop);
            if (read is not { IsCanceled: false })
            {
                Interlocked.Increment(ref _cancellations);
            }

            if (read is not { } result)
            {
                continue;
            }

            long consumed = Math.Min(result.Buffer.Length, random.Next(3) == 0 ? random.Next(100_000) : long.MaxValue);
            foreach (ReadOnlyMemory<byte> piece in result.Buffer.Slice(0, consumed))
            {
                Assert.Equal(-1, Pattern.FirstDifference(piece.Span, index));
                index += piece.Length;
                Interlocked.Add(ref _bytes, piece.Length);
            }

            bool isEnd = result.IsCompleted && consumed == result.Buffer.Length;
            SequencePosition position = result.Buffer.GetPosition(consumed);
            reader.AdvanceTo(position, random.Next(2) == 0 ? position : result.Buffer.End);
            if (isEnd)
            {
                string end = writer is FilePipeWriter other
                    ? $"ours, at {other.Position}, {other.UnflushedBytes} unflushed" : writer?.GetType().Name ?? "none";
                Assert.True(index == length, $"{index} of {length} bytes have come to a {reader.GetType().Name}; the other end: {end}.");
                break;
            }
        }

        await reader.CompleteAsync();
    }

    /// <summary>
    /// Often cancels: with a token or without, before the start, at once after it, or from another thread somewhat later, which may be in
    /// the next one's time. <see langword="null"/>: the token has ended it.
    /// </summary>
    private static async Task<T?> CanceledAsync<T>(Func<CancellationToken, ValueTask<T>> start, Action cancelPending, Random random)
        where T : struct
    {
        using CancellationTokenSource token = new();
        Action cancel = random.Next(2) == 0 ? token.Cancel : cancelPending;
        int when = random.Next(8);
        int spins = random.Next(5000);
        if (when == 0)
        {
            cancel();
        }

        ValueTask<T> pending = start(token.Token);
        Task later = Task.CompletedTask;
        switch (when)
        {
            case 1:
                cancel();
                break;
            case 2:
                later = Task.Run(() =>
                {
                    Thread.SpinWait(spins);
                    cancel();
                });
                break;
        }

        try
        {
            return await pending;
        }
        catch (OperationCanceledException)
        {
            return null;
        }
        finally
        {
            await later;
        }
    }

    private T Watch<T>(T file)
        where T : class
    {
        lock (_gate)
        {
            if (_watched.Count >= _watchedLimit)
            {
                _watched.RemoveAll(static reference => !reference.IsAlive);
                _watchedLimit = _watched.Count + 10_000;
            }

            _watched.Add(new WeakReference(file));
        }

        return file;
    }

    /// <summary>
    /// How many of the readers, writers and handles something still holds: an overlapped that was not freed would, or a cancellation that
    /// was not unregistered.
    /// </summary>
    private int Alive()
    {
        GC.Collect();
        GC.WaitForPendingFinalizers();
        GC.Collect();
        lock (_gate)
        {
            return _watched.Count(static reference => reference.IsAlive);
        }
    }

    /// <summary>
    /// How many files of the folder, and pipes named for it, this process has open. Process.HandleCount would count whatever the runtime
    /// opens meanwhile, and is under Wine the size of the table of handles, which grows by doubling.
    /// </summary>
    private unsafe int OpenFiles()
    {
        if (!OperatingSystem.IsWindows())
        {
            return OpenHandles.Below(_folder.Path);
        }

        const int FileNameInfo = 2;
        const int Size = 2048;
        int open = 0;
        byte* information = stackalloc byte[Size];
        for (nint handle = 4; handle < 0x10000; handle += 4)
        {
            // FILE_NAME_INFO: the length in bytes, then the name.
            if (GetFileInformationByHandleEx(handle, FileNameInfo, information, Size) != 0
                && new ReadOnlySpan<char>(information + sizeof(int), *(int*)information / sizeof(char)).Contains(
                    Path.GetFileName(_folder.Path), StringComparison.Ordinal))
            {
                open++;
            }
        }

        return open;
    }

    [LibraryImport("kernel32.dll")]
    private static unsafe partial int GetFileInformationByHandleEx(nint handle, int kind, byte* information, int size);
}
