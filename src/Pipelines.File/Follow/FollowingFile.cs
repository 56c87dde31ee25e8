using Pipelines.File.Diagnostics;
using Pipelines.File.IO;
using Pipelines.File.Threading;

namespace Pipelines.File.Follow;

/// <summary>
/// A file that is read and whose end is waited at: the file, with a loop around its reads. A read that finds the end is one that has to wait, as that of an empty FIFO is; it ends without bytes only when
/// nothing more comes.
/// </summary>
internal sealed class FollowingFile : OpenedFile, IValueTaskSource, IValueTaskSource<FileRequest>
{
    private readonly OpenedFile _file;
    private readonly FollowedFile _followed;

    // Nothing of a read that was tried, and would wait, is with the system: asking for the length saves a thread the read that finds nothing.
    private readonly bool _looksFirst;

    // The run under way, and the request that begins the next one.
    private ManualResetValueTaskSourceCore<bool> _run;
    private ManualResetValueTaskSourceCore<FileRequest> _start;
    private bool _hasLoop;

    // The last try has found the end. Owned as the file's one request is.
    private bool _hasFoundEnd;

    private FollowingFile(OpenedFile file, string? path, int interval)
        : base(file.Handle, file.GivenPath, file.Properties)
    {
        _file = file;
        _followed = new FollowedFile(file.Handle, path, file.Identity, interval);
        _looksFirst = file.Kind != FilePipeBackend.Overlapped;
        SharesPosition = file.SharesPosition;
        Appends = file.Appends;
    }

    // A reader that was forgotten, not completed: the watch would stay for ever, and keep the file open.
    ~FollowingFile() => _followed?.Release();

    internal override FilePipeBackend Kind => _file.Kind;

    internal override FileIdentity Identity => _followed.Identity;

    internal override int MaxBuffersPerOperation => _file.MaxBuffersPerOperation;

    internal override int ReadGranularity => _file.ReadGranularity;

    internal override int ReadAlignment => _file.ReadAlignment;

    internal override bool IsDirect => _file.IsDirect;

    internal override int BytesPerRead => _file.BytesPerRead;

    /// <summary>The file itself where it has no end to wait at: a FIFO, a device, a file that the system makes up.</summary>
    /// <param name="file">The file.</param>
    /// <param name="path">The whole path that it was opened by; <see langword="null"/> where its name does not count.</param>
    /// <param name="interval">How often to look where the system does not tell of changes.</param>
    internal static OpenedFile Of(OpenedFile file, string? path, TimeSpan interval)
        => file.Properties is { IsRegular: true, CanSeek: true, KnownLength: not null }
            ? new FollowingFile(file, path, Math.Max(1, (int)interval.TotalMilliseconds))
            : file;

    internal override FileRequest Rent() => _file.Rent();

    internal override bool TryPerform(FileRequest operation, bool mayWait)
    {
        bool isPerformed = _file.TryPerform(operation, mayWait);
        _hasFoundEnd = isPerformed && HasFoundEnd(operation);
        return isPerformed && !_hasFoundEnd;
    }

    internal override void Start(FileRequest operation) => _file.Start(operation);

    internal override ValueTask RunAsync(FileRequest request)
    {
        _run.Reset();
        ValueTask run = new(this, _run.Version);
        if (!_hasLoop)
        {
            _hasLoop = true;
            LibraryContext.Run(static file => _ = ((FollowingFile)file!).LoopAsync(), this);
        }

        _start.SetResult(request);
        return run;
    }

    internal override void Cancel(FileRequest operation, int generation)
    {
        if (!_followed.TryCancel(operation, generation))
        {
            _file.Cancel(operation, generation);
        }
    }

    [SuppressMessage("Usage", "CA1816:Dispose methods should call SuppressFinalize", Justification = "This is what disposes.")]
    internal override void Release(bool closeHandle)
    {
        GC.SuppressFinalize(this);
        _followed.Release();
        _file.Release(closeHandle);
    }

    void IValueTaskSource.GetResult(short token) => _run.GetResult(token);

    ValueTaskSourceStatus IValueTaskSource.GetStatus(short token) => _run.GetStatus(token);

    void IValueTaskSource.OnCompleted(Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags)
        => _run.OnCompleted(continuation, state, token, flags);

    FileRequest IValueTaskSource<FileRequest>.GetResult(short token) => _start.GetResult(token);

    ValueTaskSourceStatus IValueTaskSource<FileRequest>.GetStatus(short token) => _start.GetStatus(token);

    void IValueTaskSource<FileRequest>.OnCompleted(Action<object?> continuation, object? state, short token, ValueTaskSourceOnCompletedFlags flags)
        => _start.OnCompleted(continuation, state, token, flags);

    /// <summary>The runs, one after the other: one loop for the life of the file, so that a run allocates nothing.</summary>
    private async Task LoopAsync()
    {
        while (true)
        {
            FileRequest request = await new ValueTask<FileRequest>(this, _start.Version).WithoutBox();
            try
            {
                bool isRead = request.Kind == FileRequestKind.Read;
                bool isAtEnd = isRead && (_hasFoundEnd || (_looksFirst && _followed.IsAtEnd(request.Offset)));
                bool isStarted = false;
                FollowedEnd end = FollowedEnd.Changed;
                _hasFoundEnd = false;
                while (end == FollowedEnd.Changed)
                {
                    if (!isAtEnd)
                    {
                        isStarted = true;
                        await _file.RunAsync(request).WithoutBox();
                        if (!HasFoundEnd(request))
                        {
                            break;
                        }
                    }

                    end = await _followed.WaitAsync(request).WithoutBox();
                    isAtEnd = end == FollowedEnd.Changed && _file.TryPerform(request);
                    if (isAtEnd && !HasFoundEnd(request))
                    {
                        break;
                    }
                }

                if (!isStarted)
                {
                    FilePipeMetrics.HandedOver(request.Kind);
                }

                if (end == FollowedEnd.Over)
                {
                    request.Finish(0);
                }
                else if (end == FollowedEnd.Canceled)
                {
                    request.FinishCanceled();
                }
            }
            catch (Exception e)
            {
                request.Finish(e);
            }

            // Whoever awaits the run may begin the next one right here. A wait may have ended on the thread that watches, or that looks.
            _start.Reset();
            _run.RunContinuationsAsynchronously = request.ResumesOnPool && !Thread.CurrentThread.IsThreadPoolThread;
            _run.SetResult(true);
        }
    }

    /// <summary>Whether that is a read which has found the end of the file.</summary>
    private static bool HasFoundEnd(FileRequest request) => request is { Kind: FileRequestKind.Read, Transferred: 0, Error: null, IsCanceled: false };
}
