using System.Buffers;
using System.IO.Pipelines;
using FilePipelinesChild;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelinesTests;

/// <summary>A reader past the page cache gets what is there while calls behind it go on, and others begin.</summary>
public sealed class DirectSlidingTests : IDisposable
{
    private const int Call = DirectFile.BytesPerCall;
    private const int InFlight = 4;
    private const int Length = 24 * 1024 * 1024;

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public DirectSlidingTests() => Assert.SkipUnless(FileOpening.IsLinux, "Linux only.");

    public void Dispose() => _folder.Dispose();

    /// <summary>A call ends only when one has begun that what one read asks for at first has no room for.</summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task ReadAsync_CallThatTakesLong_OthersBeginBehindIt(bool hasPool)
    {
        using AlignedPool pool = new();
        using ManualResetEventSlim hasBegun = new();
        DirectScript calls = new()
        {
            OnDirect = (isWrite, offset) =>
            {
                if (offset == InFlight * Call)
                {
                    Assert.True(hasBegun.Wait(TimeSpan.FromSeconds(60), _stop));
                }
                else if (offset >= 2 * InFlight * Call)
                {
                    hasBegun.Set();
                }

                return null;
            },
        };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(Length)), Options(hasPool ? pool : null));
        Assert.Equal(Length, await PatternFile.ReadToEndAsync(reader));
        Assert.Equal(0, pool.Rented);
    }

    /// <summary>
    /// A call fails, or returns less, or nothing, behind bytes that the caller has: what is in front of it comes, and nothing that calls
    /// behind it have read.
    /// </summary>
    [Theory]
    [InlineData(false, 5, -Libc.EIO)]
    [InlineData(true, 5, -Libc.EIO)]
    [InlineData(false, 9, -Libc.EIO)]
    [InlineData(true, 9, -Libc.EIO)]
    [InlineData(false, 6, 4096)]
    [InlineData(true, 6, 64 * 1024)]
    [InlineData(true, 8, 128 * 1024)]
    public async Task ReadAsync_CallThatFailsOrIsShort_EndsWhatIsBehindIt(bool hasPool, int index, int answer)
    {
        using AlignedPool pool = new();
        int times = 0;
        DirectScript calls = new()
        {
            OnDirect = (_, offset) => offset == index * Call && (answer < 0 || Interlocked.Increment(ref times) == 1) ? answer : null,
        };
        FilePipeReader reader = calls.Read(_folder.File("f", Pattern.Bytes(Length)), Options(hasPool ? pool : null));
        if (answer < 0)
        {
            IOException e = await Assert.ThrowsAsync<IOException>(async () => await PatternFile.ReadToEndAsync(reader));
            Assert.Equal(Libc.EIO, e.HResult);
            Assert.Equal(index * Call, reader.Position);
            await reader.CompleteAsync();
        }
        else
        {
            Assert.Equal(Length, await PatternFile.ReadToEndAsync(reader));
        }

        Assert.Equal(0, pool.Rented);
    }

    /// <summary>What no thread has begun is not begun any more, and the handle is closed behind the last call.</summary>
    [Fact]
    public async Task CompleteAsync_CallsUnderWay_NoFurtherOneBegins()
    {
        using ManualResetEventSlim goesOn = new();
        using CountdownEvent begun = new(InFlight);
        int calls = 0;
        DirectScript script = new()
        {
            OnDirect = (isWrite, offset) =>
            {
                _ = Interlocked.Increment(ref calls);
                if (offset >= InFlight * Call)
                {
                    _ = begun.IsSet || begun.Signal();
                    goesOn.Wait(_stop);
                }

                return null;
            },
        };
        FilePipeReader reader = script.Read(_folder.File("f", Pattern.Bytes(Length)), Options(null));
        SafeFileHandle handle = reader.OpenedFile.Handle;
        ReadResult result = await reader.ReadAsync(_stop);
        Assert.Equal(InFlight * Call, result.Buffer.Length);
        reader.AdvanceTo(result.Buffer.End);
        Assert.True(begun.Wait(TimeSpan.FromSeconds(60), _stop));
        ValueTask completion = reader.CompleteAsync();
        Assert.False(completion.IsCompleted || handle.IsClosed);
        goesOn.Set();
        await completion;
        Assert.True(handle.IsClosed);
        Assert.Equal(2 * InFlight, calls);
    }

    /// <summary>The same where threads have all parts that were asked for, and the first half of them comes after the end.</summary>
    [Fact]
    public async Task CompleteAsync_EveryPartTaken_AsksForNoFurtherOne()
    {
        const int Last = (2 * InFlight) - 1;
        using ManualResetEventSlim firstGoesOn = new();
        using ManualResetEventSlim lastGoesOn = new();
        using ManualResetEventSlim isLastTaken = new();
        int calls = 0;
        DirectScript script = new()
        {
            OnDirect = (isWrite, offset) =>
            {
                _ = Interlocked.Increment(ref calls);
                if (offset == 0)
                {
                    firstGoesOn.Wait(_stop);
                }
                else if (offset == Last * Call)
                {
                    isLastTaken.Set();
                    lastGoesOn.Wait(_stop);
                }

                return null;
            },
        };
        FilePipeReader reader = script.Read(_folder.File("f", Pattern.Bytes(Length)), Options(null));
        Task<ReadResult> read = reader.ReadAsync(_stop).AsTask();
        Assert.True(isLastTaken.Wait(TimeSpan.FromSeconds(60), _stop));
        ValueTask completion = reader.CompleteAsync();
        _ = await Assert.ThrowsAsync<InvalidOperationException>(() => read);
        firstGoesOn.Set();

        // Whoever asks for more has a thread free to read it.
        await Task.Delay(200, _stop);
        lastGoesOn.Set();
        await completion;
        Assert.Equal(2 * InFlight, calls);
    }

    /// <summary>The pool has nothing for a while: the bytes under way come all the same, and the next read asks it again.</summary>
    [Fact]
    public async Task ReadAsync_PoolThatThrowsInBetween_LosesNothing()
    {
        using AlignedPool aligned = new();
        using ThrowingPool pool = new(aligned);
        FilePipeReader reader = new DirectScript().Read(_folder.File("f", Pattern.Bytes(Length)), Options(pool));
        long index = 0;
        for (bool isOver = false; !isOver;)
        {
            ReadResult result;
            try
            {
                result = await reader.ReadAsync(_stop);
            }
            catch (InsufficientMemoryException)
            {
                continue;
            }

            foreach (ReadOnlyMemory<byte> memory in result.Buffer)
            {
                Assert.Equal(-1, Pattern.FirstDifference(memory.Span, index));
                index += memory.Length;
            }

            isOver = result.IsCompleted;
            reader.AdvanceTo(result.Buffer.End);
        }

        await reader.CompleteAsync();
        Assert.Equal(Length, index);
        Assert.Equal(0, aligned.Rented);
    }

    private static FilePipeReaderOptions Options(MemoryPool<byte>? pool)
        => new() { Caching = FileCaching.Direct, ReadsInFlight = InFlight, Pool = pool, BufferSize = 64 * 1024 };

    private sealed class ThrowingPool(MemoryPool<byte> pool) : MemoryPool<byte>
    {
        private int _rented;

        public override int MaxBufferSize => pool.MaxBufferSize;

        public override IMemoryOwner<byte> Rent(int minBufferSize = -1)
            => Interlocked.Increment(ref _rented) % 150 == 0 ? throw new InsufficientMemoryException() : pool.Rent(minBufferSize);

        protected override void Dispose(bool disposing)
        {
        }
    }
}
