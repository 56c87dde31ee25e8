using System.Buffers;
using System.Diagnostics;
using System.Diagnostics.Metrics;
using System.Globalization;
using System.IO.Pipelines;
using System.Text;
using FilePipelines.Child;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Threading;
using Pipelines.File.Writing;

// write PATH TOTAL CHUNK GUARANTEE   writes TOTAL bytes of the pattern, a flush after every CHUNK, and says how far it is
// replace PATH TOTAL CHUNK GUARANTEE likewise, with Replace; replacenew: where there is no such file
// journal FOLDER PRODUCERS [RETAIN]  appends to a journal with several producers, and says what is acknowledged, until it is killed;
//                                    retains so many bytes, or with "age" nothing
// journalturns FOLDER PRODUCER       opens a journal when nobody has it, appends and closes it, in a loop until it is killed
// journalrepair FOLDER               repairs a journal, and says "begun" before
// journalread FOLDER                 follows a journal, and says what it gets, until the journal says that it is over
// journalopen FOLDER                 opens a journal and closes it
// buffer FOLDER                      goes on in a file of the folder, says so, and waits until it is killed
// journalconsume FOLDER              processes the records of a journal as a consumer, and says which, until it is killed
// journalcount FOLDER                says how many records a journal has
// meter PATH                         reads a file, and only then begins to listen to the meter: says what it hears
// lock PATH                          takes the lock of a path, says whether it got it, and keeps it until it is killed
// read PATH BUFFER                   reads the file and checks the pattern
// copy [BYTES]                       copies standard input, or its first BYTES, to standard output
// lines TEXT COUNT                   writes COUNT lines of TEXT and their number to standard output, a flush after each
// append PATH TEXT COUNT             appends COUNT lines of TEXT and their number to a file that others append to, a flush after every
//                                    hundred
// handle DESCRIPTOR                  writes a line to a file that the shell has open, and tells Position before and after
// starve FOLDER                      keeps both threads of its pool busy, and has the library go on meanwhile
// follow PATH                        writes the lines of a file that grows to standard output, until its name means it no more
// starved PATH                       the same with a line of its own, and without a descriptor left when it begins to wait
// unfollowed PATH                    follows a file from the beginning of the process while it has no descriptor, and again when it has
// starvedlog LOG                     writes the lines of a log that is rotated while no descriptor is left, and that its writer goes on
//                                    with
// ship LOG OUT                       writes the lines of a log to a file, each behind its checkpoint, and goes on behind the last whole
//                                    one, until it is killed
// shipbatches LOG OUT LENGTH         writes which lines of that length have come, in batches, each before its checkpoint is saved
// leave FIFO                         ends while a call of the library waits
// memory length|gap                  lengthens a stream in memory by more than there is, and tells what is left of it
// awake FOLDER                        has one thread for writes, which a writer keeps awake after a write, and writes with another writer
// nothread                            queues a call while there is no memory for a thread, and another one when there is
// standard in|out FILE                opens standard input or output, and writes to FILE what it gets
// exhausted FIFO                      reads a FIFO while the process has no descriptor left, and tells what it gets when it has
// scarce FIFO                         opens a FIFO, tells what comes of it, and ends when no thread waits any more
// Exit status: 0 as asked, 3 the library threw (said on stdout), 4 the bytes are wrong.
try
{
    return args[0] switch
    {
        "write" => await WriteAsync(args, new FilePipeWriterOptions { FlushGuarantee = GuaranteeOf(args) }),
        "replace" => await WriteAsync(args, new FilePipeWriterOptions { FlushGuarantee = GuaranteeOf(args), Replace = true }),
        "replacenew" => await WriteAsync(
            args, new FilePipeWriterOptions { FlushGuarantee = GuaranteeOf(args), Replace = true, Mode = FileMode.CreateNew }),
        "buffer" => await BufferAsync(args[1]),
        "journal" => await JournalCommands.AppendAsync(args[1], IntOf(args[2]), args.Length > 3 ? args[3] : null),
        "journalturns" => await JournalCommands.TakeTurnsAsync(args[1], IntOf(args[2])),
        "journalrepair" => await JournalCommands.RepairAsync(args[1]),
        "journalread" => await JournalCommands.ReadAsync(args[1]),
        "journalopen" => await JournalCommands.OpenAsync(args[1]),
        "journalconsume" => await JournalCommands.ConsumeAsync(args[1]),
        "journalcount" => await JournalCommands.CountAsync(args[1]),
        "meter" => await ReadAndListenAsync(args[1]),
        "lock" => KeepLock(args[1]),
        "read" => await ReadAsync(args[1], IntOf(args[2])),
        "copy" => await CopyAsync(args.Length > 1 ? long.Parse(args[1], CultureInfo.InvariantCulture) : null),
        "lines" => await LinesAsync(FilePipeWriter.OpenStandardOutput(), args[1], IntOf(args[2]), linesAFlush: 1),
        "append" => await LinesAsync(
            FilePipeWriter.Create(args[1], new FilePipeWriterOptions { Mode = FileMode.Append, Share = FileShare.ReadWrite }),
            args[2], IntOf(args[3]), linesAFlush: 100),
        "handle" => await HandleAsync(IntOf(args[1])),
        "starve" => await StarveAsync(args[1]),
        "poolcaller" => WriteOnTheLastPoolThread(args[1]),
        "underlock" => CompleteUnderLock(args[1], hasCallersPool: args[2] == "callers"),
        "follow" => await FollowAsync(args[1]),
        "starved" => await FollowStarvedAsync(args[1]),
        "unfollowed" => await FollowWithoutDescriptorsAsync(args[1]),
        "starvedlog" => await FollowStarvedLogAsync(args[1]),
        "ship" => await ShipAsync(args[1], args[2]),
        "shipbatches" => await LogShipping.RunAsync(args[1], args[2], IntOf(args[3])),
        "printlogs" => await LogShipping.PrintAsync(args[1..]),
        "leave" => await LeaveAsync(args[1]),
        "memory" => RunOutOfMemory(args[1]),
        "awake" => await WriteBesideOneAwakeAsync(args[1]),
        "nothread" => QueueWithoutMemory(),
        "standard" => await OpenStandardAsync(isOutput: args[1] == "out", args[2]),
        "exhausted" => await ReadExhaustedAsync(args[1]),
        "scarce" => await OpenScarceAsync(args[1]),
        _ => 2,
    };
}
catch (Exception e) when (e is IOException or UnauthorizedAccessException)
{
    Console.WriteLine($"failed {e.GetType().Name} {e.Message}");
    return 3;
}

static int KeepLock(string path)
{
    using FileLock? taken = FileLock.TryAcquire(path);
    Console.WriteLine(taken is null ? "held" : "locked");
    if (taken is not null)
    {
        Thread.Sleep(Timeout.Infinite);
    }

    return 0;
}

static async Task<int> ReadAndListenAsync(string path)
{
    FilePipeReader reader = FilePipeReader.Create(path);
    while (await reader.ReadAsync() is { IsCompleted: false } read)
    {
        reader.AdvanceTo(read.Buffer.End);
    }

    await reader.CompleteAsync();
    bool isLoaded = AppDomain.CurrentDomain.GetAssemblies().Any(one => one.GetName().Name == "System.Diagnostics.DiagnosticSource");
    Console.WriteLine(isLoaded ? "loaded" : "not loaded");
    Listen();
    return 0;
}

static void Listen()
{
    using SemaphoreSlim published = new(0);
    using MeterListener listener = new();
    listener.InstrumentPublished = (instrument, listener) =>
    {
        if (instrument.Name == "pipelines.file.bytes_read")
        {
            listener.EnableMeasurementEvents(instrument);
            published.Release();
        }
    };
    listener.SetMeasurementEventCallback<long>((_, bytes, _, _) => Console.WriteLine($"{bytes} bytes"));
    listener.Start();
    published.Wait();
    listener.RecordObservableInstruments();
}

static async Task<int> BufferAsync(string folder)
{
    FileBufferingPipe pipe = new(new() { Folder = folder });
    await pipe.Writer.WriteAsync(new byte[1_000_000]);
    await pipe.Writer.CompleteAsync();
    Console.WriteLine(pipe.IsInFile ? "buffered" : "in memory");
    await Task.Delay(Timeout.Infinite);
    return 0;
}

static FlushGuarantee GuaranteeOf(string[] arguments) => Enum.Parse<FlushGuarantee>(arguments[4]);

static int IntOf(string argument) => int.Parse(argument, CultureInfo.InvariantCulture);

static async Task<int> WriteAsync(string[] arguments, FilePipeWriterOptions options)
{
    long total = long.Parse(arguments[2], CultureInfo.InvariantCulture);
    int chunk = IntOf(arguments[3]);
    FilePipeWriter writer = FilePipeWriter.Create(arguments[1], options);
    try
    {
        for (long index = 0; index < total; index += chunk)
        {
            int length = (int)Math.Min(chunk, total - index);
            Pattern.Fill(writer.GetSpan(length)[..length], index);
            writer.Advance(length);
            await writer.FlushAsync();
            Console.WriteLine($"flushed {index + length}");
        }
    }
    catch (IOException e)
    {
        Console.WriteLine($"flush failed {e.GetType().Name} {e.Message}");
    }

    await writer.CompleteAsync();
    Console.WriteLine($"completed {total}");
    return 0;
}

static async Task<int> OpenStandardAsync(bool isOutput, string path)
{
    string outcome = "opened";
    try
    {
        if (isOutput)
        {
            await FilePipeWriter.OpenStandardOutput().CompleteAsync();
        }
        else
        {
            await FilePipeReader.OpenStandardInput().CompleteAsync();
        }
    }
    catch (Exception e) when (e is IOException or UnauthorizedAccessException)
    {
        outcome = e.GetType().Name;
    }

    await File.WriteAllTextAsync(path, outcome);
    return 0;
}

static async Task<int> ReadExhaustedAsync(string path)
{
    using SafeFileHandle both = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
    using FileStream stream = new(both, FileAccess.Write, bufferSize: 0);
    FilePipeReader reader = FilePipeReader.Create(path);
    ValueTask<ReadResult> read = reader.ReadAsync();
    List<SafeFileHandle> taken = [];

    // Once before, as a descriptor is needed to load what is used for the first time; and until the library has let go of what it waited
    // with.
    await Task.Delay(50);
    stream.Write("first "u8);
    ReadResult first = await read;
    Console.Write(Encoding.ASCII.GetString(first.Buffer.ToArray()));
    reader.AdvanceTo(first.Buffer.End);
    await Task.Delay(1000);

    // The runtime ends a process that has no descriptor left for a thread of the pool: those that there are have to do.
    const int Threads = 4;
    using (Barrier started = new(Threads))
    {
        await Task.WhenAll(Enumerable.Range(0, Threads).Select(_ => Task.Run(started.SignalAndWait)));
    }

    ThreadPool.SetMinThreads(1, 1);
    ThreadPool.SetMaxThreads(Threads, Threads);
    try
    {
        while (true)
        {
            taken.Add(File.OpenHandle("/dev/null"));
        }
    }
    catch (IOException)
    {
        read = reader.ReadAsync();
        await Task.Delay(100);
        taken.ForEach(handle => handle.Dispose());
    }

    stream.Write("told"u8);
    ReadResult result = await read;
    Console.WriteLine(Encoding.ASCII.GetString(result.Buffer.ToArray()));
    return 0;
}

static async Task<int> OpenScarceAsync(string path)
{
    Task<FilePipeReader> opening = FilePipeReader.OpenAsync(path).AsTask();
    await Task.WhenAny(opening);
    Console.WriteLine($"{opening.Status} {opening.Exception?.InnerException?.HResult}");
    while (WaitingThreads.Opens.UnderWayCount > 0)
    {
        await Task.Delay(1);
    }

    return 0;
}

static async Task<int> CopyAsync(long? length)
{
    FilePipeReader reader = FilePipeReader.OpenStandardInput(new FilePipeReaderOptions { Length = length });
    FilePipeWriter writer = FilePipeWriter.OpenStandardOutput();
    await reader.CopyToAsync(writer);
    await writer.CompleteAsync();
    await reader.CompleteAsync();
    return 0;
}

static async Task<int> HandleAsync(int descriptor)
{
    FilePipeWriter writer = FilePipeWriter.Create(
        new SafeFileHandle(descriptor, ownsHandle: false), new FilePipeWriterOptions { FlushGuarantee = FlushGuarantee.Written });
    long before = writer.Position;
    await writer.WriteAsync("handle\n"u8.ToArray());
    Console.WriteLine($"{before} {writer.Position}");
    await writer.CompleteAsync();
    return 0;
}

static async Task<int> LinesAsync(FilePipeWriter writer, string text, int count, int linesAFlush)
{
    for (int i = 0; i < count; i++)
    {
        writer.Write(Encoding.UTF8.GetBytes(string.Create(CultureInfo.InvariantCulture, $"{text} {i}\n")));
        if ((i + 1) % linesAFlush == 0)
        {
            await writer.FlushAsync();
        }
    }

    await writer.CompleteAsync();
    return 0;
}

static async Task<int> ReadAsync(string path, int bufferSize, FileCaching caching = FileCaching.Keep)
{
    FilePipeReader reader = FilePipeReader.Create(path, new FilePipeReaderOptions { BufferSize = bufferSize, Caching = caching });
    long index = 0;
    while (true)
    {
        ReadResult result = await reader.ReadAsync();
        foreach (ReadOnlyMemory<byte> memory in result.Buffer)
        {
            if (Pattern.FirstDifference(memory.Span, index) is long difference and >= 0)
            {
                Console.WriteLine($"differs at {difference}");
                return 4;
            }

            index += memory.Length;
        }

        reader.AdvanceTo(result.Buffer.End);
        if (result.IsCompleted)
        {
            break;
        }
    }

    await reader.CompleteAsync();
    Console.WriteLine($"read {index}");
    return 0;
}

static int CompleteUnderLock(string folder, bool hasCallersPool)
{
    ThreadPool.SetMinThreads(8, 8);
    ThreadPool.SetMaxThreads(8, 8);
    Lock gate = new();
    using CountdownEvent left = new(9);
    FilePipeWriter writer = FilePipeWriter.Create(
        Path.Combine(folder, "f"), new FilePipeWriterOptions { Pool = hasCallersPool ? System.Buffers.MemoryPool<byte>.Shared : null });
    for (int i = 0; i < 100; i++)
    {
        // So that nothing is slow for being done the first time.
        writer.GetSpan(1000)[..1000].Clear();
        writer.Advance(1000);
        writer.FlushAsync(FlushGuarantee.Written).AsTask().Wait();
    }

    writer.GetSpan(1000)[..1000].Clear();
    writer.Advance(1000);
    ThreadPool.UnsafeQueueUserWorkItem(
        _ =>
        {
            lock (gate)
            {
                for (int i = 0; i < 8; i++)
                {
                    ThreadPool.UnsafeQueueUserWorkItem(
                        _ =>
                        {
                            lock (gate)
                            {
                                left.Signal();
                            }
                        },
                        null);
                }

                // What this hands over comes behind those.
                _ = writer.FlushAsync().AsTask();
                writer.Complete();
            }

            left.Signal();
        },
        null);
    bool isOver = left.Wait(TimeSpan.FromMinutes(2));
    Console.WriteLine(isOver ? "over" : $"{left.CurrentCount} are left");
    return isOver ? 0 : 1;
}

static async Task<int> StarveAsync(string folder)
{
    string path = Path.Combine(folder, "written");
    ThreadPool.SetMinThreads(2, 2);
    ThreadPool.SetMaxThreads(2, 2);
    FilePipeWriter writer = FilePipeWriter.Create(path);
    FilePipeWriter durable = FilePipeWriter.Create(
        Path.Combine(folder, "durable"), new FilePipeWriterOptions { FlushGuarantee = FlushGuarantee.Durable });

    // From here on the main thread is the only one of this program's that goes on.
    using ManualResetEventSlim free = new();
    using CountdownEvent busy = new(2);
    for (int i = 0; i < 2; i++)
    {
        ThreadPool.UnsafeQueueUserWorkItem(
            _ =>
            {
                busy.Signal();
                free.Wait();
            },
            null);
    }

    busy.Wait();
    for (int i = 0; i < 20; i++)
    {
        Pattern.Fill(writer.GetSpan(100_000)[..100_000], i * 100_000);
        writer.Advance(100_000);
        Task<FlushResult> flush = writer.FlushAsync().AsTask();

        // What a flush hands over is written, whether or not anybody is told.
        while (new FileInfo(path).Length < (i + 1) * 100_000)
        {
            Thread.Sleep(1);
        }

        if (!flush.IsCompleted)
        {
            return 5;
        }
    }

    Console.WriteLine("written");
    Task<FlushResult> synced = durable.WriteAsync(new byte[1000]).AsTask();
    Task<FilePipeReader> opening = FilePipeReader.OpenAsync(path).AsTask();

    // One that a waiting thread ended before its caller looked is over at once; a thread of the pool has to tell of the others.
    (bool isSynced, bool isOpened) = (synced.IsCompleted, opening.IsCompleted);
    Thread.Sleep(200);
    if (synced.IsCompleted != isSynced || opening.IsCompleted != isOpened)
    {
        return 6;
    }

    // Complete blocks, and needs no thread of the pool.
    writer.Complete();
    free.Set();
    await synced;
    Console.WriteLine("on the device");
    await durable.CompleteAsync();
    FilePipeReader reader = await opening;
    Console.WriteLine("opened");
    ReadResult result = await reader.ReadAtLeastAsync(2_000_000);
    foreach (ReadOnlyMemory<byte> memory in result.Buffer)
    {
        if (Pattern.FirstDifference(memory.Span, 0) == 0)
        {
            return 4;
        }

        break;
    }

    Console.WriteLine("read");
    await reader.CompleteAsync();
    Console.WriteLine("done");
    return 0;
}

// The caller has the pool's last thread and keeps it: what it has flushed is written all the same.
static int WriteOnTheLastPoolThread(string folder)
{
    string path = Path.Combine(folder, "f");
    ThreadPool.SetMinThreads(2, 2);
    ThreadPool.SetMaxThreads(2, 2);
    using ManualResetEventSlim free = new();
    using ManualResetEventSlim busy = new();
    using ManualResetEventSlim written = new();
    ThreadPool.UnsafeQueueUserWorkItem(
        _ =>
        {
            busy.Set();
            free.Wait();
        },
        null);
    busy.Wait();
    ThreadPool.UnsafeQueueUserWorkItem(
        _ =>
        {
            FilePipeWriter writer = FilePipeWriter.Create(path);
            writer.GetSpan(1000)[..1000].Clear();
            writer.Advance(1000);
            _ = writer.FlushAsync().AsTask();
            while (new FileInfo(path).Length < 1000)
            {
                Thread.Sleep(1);
            }

            writer.Complete();
            written.Set();
        },
        null);
    bool isWritten = written.Wait(TimeSpan.FromMinutes(2));
    Console.WriteLine(isWritten ? "written" : "not written");
    return isWritten ? 0 : 1;
}

static async Task<int> LeaveAsync(string fifo)
{
    // open(2) for reading waits for a writer, and nothing ends that call; the other waits in the poller.
    Task<FilePipeReader> blocked = FilePipeReader.OpenAsync(
        fifo, new FilePipeReaderOptions { Backend = FilePipeBackend.Portable }).AsTask();
    Task<FilePipeReader> waiting = FilePipeReader.OpenAsync(fifo).AsTask();
    await Task.Delay(200);
    if (blocked.IsCompleted || waiting.IsCompleted)
    {
        return 5;
    }

    Console.WriteLine("left");
    return 0;
}

static async Task<int> FollowAsync(string path)
{
    FilePipeReaderOptions options = new() { Follow = true, FollowInterval = TimeSpan.FromMilliseconds(25) };
    await foreach (ReadOnlySequence<byte> line in FilePipeReader.Create(path, options).ReadLineSequencesAsync())
    {
        Console.WriteLine(Encoding.UTF8.GetString(line));
    }

    Console.WriteLine("completed");
    return 0;
}

static async Task<int> FollowStarvedAsync(string path)
{
    FilePipeReader reader = FilePipeReader.Create(
        path, new FilePipeReaderOptions { Follow = true, FollowInterval = TimeSpan.FromMilliseconds(25) });
    ReadResult result = await reader.ReadAtLeastAsync(4);
    Console.Write(Encoding.UTF8.GetString(result.Buffer));
    reader.AdvanceTo(result.Buffer.End);
    List<SafeFileHandle> taken = TakeDescriptors();
    ValueTask<ReadResult> waiting = reader.ReadAsync();
    Thread.Sleep(500);
    taken.ForEach(static handle => handle.Dispose());
    Console.WriteLine("waits");
    await File.AppendAllTextAsync(path, "two\n");
    result = await waiting;
    Console.Write(Encoding.UTF8.GetString(result.Buffer));
    reader.AdvanceTo(result.Buffer.End);
    File.Move(path, path + ".1");
    while (!(result = await reader.ReadAsync()).IsCompleted)
    {
        reader.AdvanceTo(result.Buffer.End);
    }

    Console.WriteLine("completed");
    return 0;
}

static async Task<int> FollowWithoutDescriptorsAsync(string path)
{
    // What the call needs is loaded: only the descriptors are missing, above all that for the first timer of the process.
    await using (FilePipeReader prepared = FilePipeReader.Create(path))
    {
        _ = await prepared.ReadAsync();
    }

    FilePipeReaderOptions options = new() { Follow = true, FollowInterval = TimeSpan.FromMilliseconds(25) };
    SafeFileHandle handle = File.OpenHandle(path);
    List<SafeFileHandle> taken = TakeDescriptors();
    string outcome = "opened";
    try
    {
        FilePipeReader.Create(handle, options).Complete();
    }
    catch (Exception e)
    {
        outcome = $"{e.GetType().Name}: {e.Message}";
    }

    taken.ForEach(static one => one.Dispose());
    Console.WriteLine(outcome);
    FilePipeReader reader = FilePipeReader.Create(handle, options);
    ReadResult result = await reader.ReadAtLeastAsync(4);
    Console.Write(Encoding.UTF8.GetString(result.Buffer));
    return 0;
}

static async Task<int> FollowStarvedLogAsync(string path)
{
    LogFollowerOptions options = new() { QuietTime = TimeSpan.FromMilliseconds(50), FollowInterval = TimeSpan.FromMilliseconds(25) };
    using FileStream writer = new(path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite | FileShare.Delete, bufferSize: 0);
    writer.Write("one\n"u8);
    File.WriteAllBytes(path + ".next", []);
    using CancellationTokenSource ended = new();
    using ManualResetEventSlim hasBegun = new();
    Task following = FollowAsync();
    async Task FollowAsync()
    {
        await foreach (FollowedLine line in new LogFollower(path, options).ReadLinesAsync(ended.Token))
        {
            Console.WriteLine(line.ToString());
            hasBegun.Set();
            if (line.ToString() == "three")
            {
                return;
            }
        }
    }

    // On this thread: it is none of the pool's. The follower waits at the end of the log a moment after its first line.
    hasBegun.Wait();
    Thread.Sleep(300);
    List<SafeFileHandle> taken = TakeDescriptors();
    File.Move(path, path + ".1");
    File.Move(path + ".next", path);
    Thread.Sleep(500);
    writer.Write("two\n"u8);
    taken.ForEach(static handle => handle.Dispose());
    await Task.Delay(200);
    await File.AppendAllTextAsync(path, "three\n");
    await following;
    return 0;
}

static List<SafeFileHandle> TakeDescriptors()
{
    List<SafeFileHandle> taken = [];
    StartPoolThreads();

    // .NET 11 loads ICU later, and ends the process if it has no descriptor for that.
    _ = CultureInfo.InvariantCulture.CompareInfo.Compare("a", "b");
    try
    {
        while (true)
        {
            taken.Add(File.OpenHandle("/dev/null"));
        }
    }
    catch (IOException)
    {
        // No more.
        return taken;
    }
}

// The runtime ends a process in which it cannot start a thread of its pool, for which it needs a descriptor (pipe2). So there are as many
// as there may be before none is left.
static void StartPoolThreads()
{
    const int Threads = 8;
    ThreadPool.SetMinThreads(Threads, Threads);
    ThreadPool.SetMaxThreads(Threads, Threads);
    using CountdownEvent started = new(Threads);
    using CountdownEvent ended = new(Threads);
    for (int i = 0; i < Threads; i++)
    {
        ThreadPool.UnsafeQueueUserWorkItem(
            _ =>
            {
                started.Signal();
                started.Wait();
                ended.Signal();
            },
            null);
    }

    ended.Wait();
}

static int RunOutOfMemory(string how)
{
    const int Much = 700_000_000;
    using PooledMemoryStream stream = new();
    stream.Write(Pattern.Bytes(1_000_000));
    stream.Position = how == "gap" ? Much : 5;
    string thrown = "nothing";
    try
    {
        if (how == "gap")
        {
            stream.WriteByte(1);
        }
        else
        {
            stream.SetLength(Much);
        }
    }
    catch (OutOfMemoryException e)
    {
        thrown = e.GetType().Name;
    }

    Console.WriteLine($"{thrown}, {stream.Length} bytes, position {stream.Position}");
    stream.Position = 1_000_000;
    stream.Write(Pattern.Bytes(100_000, 1_000_000));
    return Pattern.FirstDifference(stream.ToArray()) == -1 && stream.Length == 1_100_000 ? 0 : 4;
}

static async Task<int> WriteBesideOneAwakeAsync(string folder)
{
    FastWrites longAwake = new(TimeProvider.System) { AwakeTicks = long.MaxValue / 2 };
    await using FilePipeWriter awake = WriterOf("awake", FlushGuarantee.WriteBehind, longAwake);
    await awake.WriteAsync(Pattern.Bytes(100, 0));
    await using FilePipeWriter other = WriterOf("other", FlushGuarantee.Written, new(TimeProvider.System));
    await other.WriteAsync(Pattern.Bytes(100, 0));
    return new FileInfo(Path.Join(folder, "other")).Length == 100 ? 0 : 4;

    FilePipeWriter WriterOf(string name, FlushGuarantee guarantee, FastWrites writes)
        => FilePipeWriter.Create(
            FileOpening.Open(new FileToOpen(Path.Join(folder, name), FileMode.CreateNew, FileAccess.Write, FileShare.Read)),
            new FilePipeWriterOptions { FlushGuarantee = guarantee }, leaveOpen: false, isOpenedByPath: true, writes);
}

static int QueueWithoutMemory()
{
    // Everything that is made once, and the code.
    using CountdownEvent prepared = new(1);
    new WaitingThreads("test", limit: 8).Queue(new QueuedCall(() => prepared.Signal()));
    prepared.Wait();
    WaitingThreads threads = new("test", limit: 8);
    using CountdownEvent performed = new(2);
    QueuedCall first = new(() => performed.Signal());
    QueuedCall second = new(() => performed.Signal());
    FilledMemory memory = new();
    string thrown = "nothing";
    memory.Fill();
    try
    {
        threads.Queue(first);
    }
    catch (OutOfMemoryException)
    {
        thrown = "OutOfMemoryException";
    }

    memory.Free();
    threads.Queue(second);
    bool areAllPerformed = performed.Wait(TimeSpan.FromMinutes(2));
    Console.WriteLine($"{thrown}, {performed.CurrentCount} left");
    return areAllPerformed ? 0 : 4;
}

static async Task<int> ShipAsync(string log, string output)
{
    // The checkpoint and the line are one record: both are there, or neither.
    string written = File.Exists(output) ? await File.ReadAllTextAsync(output) : "";
    written = written[..(written.LastIndexOf('\n') + 1)];
    string last = written.TrimEnd('\n').Split('\n')[^1];
    using SafeFileHandle file = File.OpenHandle(output, FileMode.OpenOrCreate, FileAccess.Write);
    RandomAccess.SetLength(file, written.Length);
    FilePipeWriter writer = FilePipeWriter.Create(file, new FilePipeWriterOptions { Offset = written.Length });
    LogFollowerOptions options = new()
    {
        Checkpoint = last.Length > 0 ? FileCheckpoint.Parse(last.Split(' ')[0], CultureInfo.InvariantCulture) : null,
        QuietTime = TimeSpan.FromMilliseconds(50),
        FollowInterval = TimeSpan.FromMilliseconds(25),
    };
    await foreach (FollowedLine line in new LogFollower(log, options).ReadLinesAsync())
    {
        writer.Write(Encoding.UTF8.GetBytes($"{line.Checkpoint} {line}\n"));
        await writer.FlushAsync();
    }

    return 0;
}
