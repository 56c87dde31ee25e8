using Pipelines.File.Threading;

namespace Pipelines.File.IO;

/// <summary>An operation of <see cref="UnixFile"/>: what a waiting thread performs, and what waits for its descriptor before.</summary>
internal sealed class UnixRequest : FileRequest, IDescriptorWaiter
{
    private static readonly RequestPool<UnixRequest> s_pool = new();

    private UnixFile? _backend;

    private UnixRequest() => Wait = new DescriptorWait(this);

    /// <summary>Where it waits for its descriptor; the poller guards it.</summary>
    internal DescriptorWait Wait { get; }

    int IDescriptorWaiter.Generation => Generation;

    internal static UnixRequest Rent(UnixFile backend)
    {
        UnixRequest operation = s_pool.TryPop() ?? new UnixRequest();
        operation._backend = backend;
        return operation;
    }

    void IDescriptorWaiter.OnReady() => _backend!.OnReady(this);

    protected override void Perform() => _backend!.Perform(this);

    protected override void Recycle()
    {
        _backend = null;
        if (IsPoolable)
        {
            s_pool.Push(this);
        }
    }
}
