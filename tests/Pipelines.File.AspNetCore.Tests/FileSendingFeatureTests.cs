using Microsoft.AspNetCore.Http.Features;
using Microsoft.Extensions.Logging.Abstractions;
using Pipelines.File.IO;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>The sending by itself: into a pipe, from a file whose reads this test times.</summary>
public sealed class FileSendingFeatureTests : IDisposable
{
    private readonly string _path = Path.Combine(Path.GetTempPath(), Path.GetRandomFileName());
    private readonly Body _body = new();
    private readonly DefaultHttpContext _context = new();
    private readonly AbortCount _lifetime = new();
    private readonly FileSender _sender;
    private readonly FileSendingFeature _sending;

    public FileSendingFeatureTests()
    {
        _context.Features.Set<IHttpResponseBodyFeature>(_body);
        _context.Features.Set<IHttpRequestLifetimeFeature>(_lifetime);
        _context.Features.Set<IHttpResponseFeature>(_body);
        _sender = new FileSender(new FilePipelinesOptions(), NullLogger.Instance, FilePipelinesMetrics.Shared);
        _sending = new FileSendingFeature(_sender, _body);
        _sending.Begin(_context, isKestrel: false);
    }

    public void Dispose()
    {
        _sender.Dispose();
        File.Delete(_path);
    }

    [Theory]
    [InlineData(1, 1), InlineData(65536, 1), InlineData(65537, 2)]
    public void SendFileAsync_FileInThePageCache_FlushesOnceASegmentAndFinishesOnTheSpot(int size, int flushes)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Only there a read that need not wait can be told.");
        byte[] content = Add(size);
        Task sending = _sending.SendFileAsync(_path, 0, null, TestContext.Current.CancellationToken);
        Assert.SkipUnless(_body.Flushes > 0, "The file system of the temporary folder does not know RWF_NOWAIT.");
        Assert.True(sending.IsCompletedSuccessfully);
        Assert.Equal(flushes, _body.Flushes);
        Assert.Equal(content, _body.Written());
    }

    [Theory]
    [InlineData(1000), InlineData(200_000)]
    public void SendFileAsync_Warm_AllocatesNothing(int size)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Only there files are kept open.");
        Add(size);
        ArrayBody body = new();
        _context.Features.Set<IHttpResponseBodyFeature>(body);
        FileSendingFeature sending = new(_sender, body);
        long least = long.MaxValue;
        int rounds = 0;
        foreach (int round in Warm.Rounds(200, () => least == 0))
        {
            rounds++;
            long before = GC.GetAllocatedBytesForCurrentThread();
            sending.Begin(_context, isKestrel: false);
            Task sent = sending.SendFileAsync(_path, 0, null, CancellationToken.None);
            least = Math.Min(least, GC.GetAllocatedBytesForCurrentThread() - before);
            Assert.SkipUnless(sent.IsCompletedSuccessfully, "The file system of the temporary folder does not know RWF_NOWAIT.");
        }

        Assert.Equal((0, (long)rounds * size), (least, body.Advanced));
    }

    [Fact]
    public void UseFilePipelines_Null_IsTheDefaults()
    {
        ApplicationBuilder app = new(new ServiceCollection().BuildServiceProvider());
        Assert.Same(app, app.UseFilePipelines(null));
    }

    [Fact]
    public async Task SendAsync_ReadsThatWait_SendsTheBytes()
    {
        byte[] content = Add(200_000);
        using HeldFile file = new(_path);
        Task sending = _sending.SendAsync(new OpenFile(file.File, key: null), 1000, 150_000, TestContext.Current.CancellationToken);
        for (int i = 0; i < 3; i++)
        {
            await file.BegunAsync();
            Assert.False(sending.IsCompleted);
            file.Let();
        }

        await sending;
        Assert.Equal(content[1000..151_000], _body.Written());
        Assert.True(file.File.Handle.IsClosed);
        Assert.Equal(0, _lifetime.Aborts);
    }

    [Fact]
    public async Task SendAsync_ClientGoesAwayDuringARead_WaitsForItAndReadsNoMore()
    {
        Add(200_000);
        using HeldFile file = new(_path);
        using CancellationTokenSource gone = new();
        Task sending = _sending.SendAsync(new OpenFile(file.File, key: null), 0, 200_000, gone.Token);
        await file.BegunAsync();
        await gone.CancelAsync();
        Assert.False(sending.IsCompleted);
        Assert.False(file.File.Handle.IsClosed);
        file.Let();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => sending);
        Assert.True(file.File.Handle.IsClosed);
        Assert.Equal((1, 1), (file.Reads, _lifetime.Aborts));
    }

    [Fact]
    public async Task SendAsync_ReaderOfTheBodyIsGone_ReadsNoMoreAndCompletes()
    {
        Add(200_000);
        using HeldFile file = new(_path);
        _body.CompleteReader();
        Task sending = _sending.SendAsync(new OpenFile(file.File, key: null), 0, 200_000, TestContext.Current.CancellationToken);
        await file.BegunAsync();
        file.Let();
        await sending;
        Assert.True(file.File.Handle.IsClosed);
        Assert.Equal((1, 0), (file.Reads, _lifetime.Aborts));
    }

    [Fact]
    public async Task SendAsync_ReadFails_AbortsAndThrowsIt()
    {
        Add(200_000);
        using HeldFile file = new(_path);
        Task sending = _sending.SendAsync(new OpenFile(file.File, key: null), 0, 200_000, TestContext.Current.CancellationToken);
        await file.BegunAsync();
        file.Let();
        await file.BegunAsync();
        file.Let(Libc.EIO);
        Assert.Equal(Libc.EIO, (await Assert.ThrowsAsync<IOException>(() => sending)).HResult);
        Assert.True(file.File.Handle.IsClosed);
        Assert.Equal(1, _lifetime.Aborts);
    }

    private byte[] Add(int size)
    {
        byte[] content = FileTree.Content(size);
        File.WriteAllBytes(_path, content);
        return content;
    }

    /// <summary>A file none of whose reads finishes before the test lets it.</summary>
    private sealed class HeldFile : UnixCalls, IDisposable
    {
        private readonly SemaphoreSlim _begun = new(0);
        private readonly SemaphoreSlim _let = new(0);
        private int _errno;

        internal HeldFile(string path)
        {
            Assert.SkipUnless(OperatingSystem.IsLinux(), "It scripts the Unix system calls.");
            Microsoft.Win32.SafeHandles.SafeFileHandle handle = System.IO.File.OpenHandle(path);
            File = new SharedFile(FileOpening.Choose(FilePipeBackend.UnixThreads, handle, path, calls: this), path);
        }

        internal SharedFile File { get; }

        internal int Reads { get; private set; }

        internal override unsafe long Read(
            Microsoft.Win32.SafeHandles.SafeFileHandle file, Libc.IoVector* vectors, int count, long offset, int flags)
        {
            if (flags != 0)
            {
                return -Libc.EAGAIN;
            }

            _begun.Release();
            _let.Wait();
            Reads++;
            return _errno != 0 ? -_errno : base.Read(file, vectors, count, offset, flags);
        }

        /// <summary>Waits until a read is under way.</summary>
        internal async Task BegunAsync() => Assert.True(await _begun.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken));

        internal void Let(int errno = 0)
        {
            _errno = errno;
            _let.Release();
        }

        public void Dispose()
        {
            File.Dispose();
            _begun.Dispose();
            _let.Dispose();
        }
    }

    private sealed class AbortCount : IHttpRequestLifetimeFeature
    {
        internal int Aborts { get; private set; }

        public CancellationToken RequestAborted { get; set; }

        public void Abort() => Aborts++;
    }

    /// <summary>A response whose body is one array over and over again.</summary>
    private sealed class ArrayBody : PipeWriter, IHttpResponseBodyFeature
    {
        private readonly byte[] _memory = new byte[65536];

        internal long Advanced { get; private set; }

        public Stream Stream => Stream.Null;

        public PipeWriter Writer => this;

        public override void Advance(int bytes) => Advanced += bytes;

        public override Memory<byte> GetMemory(int sizeHint = 0) => _memory;

        public override Span<byte> GetSpan(int sizeHint = 0) => _memory;

        public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default) => default;

        public override void CancelPendingFlush()
        {
        }

        public override void Complete(Exception? exception = null)
        {
        }

        public void DisableBuffering()
        {
        }

        public Task StartAsync(CancellationToken cancellationToken = default) => Task.CompletedTask;

        public Task CompleteAsync() => Task.CompletedTask;

        public Task SendFileAsync(string path, long offset, long? count, CancellationToken cancellationToken = default)
            => throw new NotSupportedException();
    }

    /// <summary>A response whose body is a pipe, and which has started as soon as it was told to.</summary>
    private sealed class Body : HttpResponseFeature, IHttpResponseBodyFeature
    {
        private readonly Pipe _pipe = new(new PipeOptions(pauseWriterThreshold: 0));

        public Body() => Writer = new FlushCount(_pipe.Writer, this);

        internal int Flushes { get; private set; }

        private bool _hasStarted;

        public override bool HasStarted => _hasStarted;

        public Stream Stream => Writer.AsStream();

        public PipeWriter Writer { get; }

        internal void CompleteReader() => _pipe.Reader.Complete();

        internal byte[] Written() => _pipe.Reader.TryRead(out ReadResult result) ? result.Buffer.ToArray() : [];

        public void DisableBuffering()
        {
        }

        public Task StartAsync(CancellationToken cancellationToken = default)
        {
            _hasStarted = true;
            return Task.CompletedTask;
        }

        public Task CompleteAsync() => throw new NotSupportedException();

        public Task SendFileAsync(string path, long offset, long? count, CancellationToken cancellationToken = default)
            => throw new NotSupportedException();

        private sealed class FlushCount(PipeWriter inner, Body body) : PipeWriter
        {
            public override void Advance(int bytes) => inner.Advance(bytes);

            public override Memory<byte> GetMemory(int sizeHint = 0) => inner.GetMemory(sizeHint);

            public override Span<byte> GetSpan(int sizeHint = 0) => inner.GetSpan(sizeHint);

            public override void CancelPendingFlush() => inner.CancelPendingFlush();

            public override void Complete(Exception? exception = null) => inner.Complete(exception);

            public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
            {
                body.Flushes++;
                return inner.FlushAsync(cancellationToken);
            }
        }
    }
}
