namespace Pipelines.File.IO;

/// <summary>A request of <see cref="PortableFile"/>, and its wait for a read of the runtime's, whose own source of that wait is pooled.</summary>
internal sealed class PortableRequest : FileRequest
{
    private static readonly RequestPool<PortableRequest> s_pool = new();

    private readonly Action _onRead;
    private PortableFile? _file;
    private ValueTaskAwaiter<int> _read;

    private PortableRequest() => _onRead = () => _file!.OnRead(this);

    internal static PortableRequest Rent(PortableFile file)
    {
        PortableRequest request = s_pool.TryPop() ?? new PortableRequest();
        request._file = file;
        return request;
    }

    /// <summary>Whether the read is over; else the file is told when it is.</summary>
    internal bool IsOver(ValueTask<int> read)
    {
        _read = read.GetAwaiter();
        if (_read.IsCompleted)
        {
            return true;
        }

        _read.UnsafeOnCompleted(_onRead);
        return false;
    }

    /// <summary>The bytes that the read has brought; throws what it has failed with.</summary>
    internal int TakeRead() => _read.GetResult();

    protected override void Perform() => _file!.Perform(this);

    protected override void Recycle()
    {
        _file = null;
        _read = default;
        s_pool.Push(this);
    }
}
