using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;

namespace Pipelines.File.IO;

/// <summary>
/// An operation of <see cref="PortableFile"/>, and its wait for the runtime's call. The runtime's own source of that wait is pooled;
/// an async method of ours would not be.
/// </summary>
internal sealed class PortableRequest : FileRequest
{
    private static readonly RequestPool<PortableRequest> s_pool = new();

    private readonly Action _onFinished;
    private PortableFile? _backend;
    private ValueTaskAwaiter<int> _read;
    private ValueTaskAwaiter _write;

    private PortableRequest() => _onFinished = () => _backend!.OnFinished(this);

    /// <summary>The use of it that was canceled. The lock of <see cref="SequentialReader"/> guards it.</summary>
    internal int CanceledGeneration { get; set; } = -1;

    /// <summary>What the call threw before there was anything to wait for.</summary>
    internal Exception? BeginError { get; set; }

    internal static PortableRequest Rent(PortableFile backend)
    {
        PortableRequest operation = s_pool.TryPop() ?? new PortableRequest();
        operation._backend = backend;
        return operation;
    }

    /// <summary>Whether the read is over; else the back end is told when it is.</summary>
    internal bool TryFinishNow(ValueTask<int> read)
    {
        _read = read.GetAwaiter();
        if (_read.IsCompleted)
        {
            return true;
        }

        _read.UnsafeOnCompleted(_onFinished);
        return false;
    }

    /// <inheritdoc cref="TryFinishNow(ValueTask{int})"/>
    internal bool TryFinishNow(ValueTask write)
    {
        _write = write.GetAwaiter();
        if (_write.IsCompleted)
        {
            return true;
        }

        _write.UnsafeOnCompleted(_onFinished);
        return false;
    }

    /// <summary>The bytes that moved, or what was thrown.</summary>
    internal long TakeResult()
    {
        if (BeginError is { } error)
        {
            BeginError = null;
            ExceptionDispatchInfo.Throw(error);
        }

        switch (Kind)
        {
            case FileRequestKind.Read:
                return _read.GetResult();
            case FileRequestKind.Write:
                _write.GetResult();
                return FirstBuffer.Length;
            default:
                return 0;
        }
    }

    protected override void Perform() => _backend!.Perform(this);

    protected override void Recycle()
    {
        _backend = null;
        _read = default;
        _write = default;
        s_pool.Push(this);
    }
}
