namespace Pipelines.File.Threading;

/// <summary>Whoever waits for a descriptor.</summary>
internal interface IDescriptorWaiter
{
    /// <summary>Which use of the object waits, since objects are reused and a cancellation may come late.</summary>
    int Generation { get; }

    /// <summary>
    /// Called once for each wait that nobody has canceled, on the poller's thread: the descriptor can be read or written, or may be. It
    /// does not wait.
    /// </summary>
    void OnReady();
}

/// <summary>One wait for a descriptor. Reusable; the poller guards it.</summary>
internal sealed class DescriptorWait(IDescriptorWaiter waiter)
{
    internal IDescriptorWaiter Waiter { get; } = waiter;

    /// <summary>The generation that was canceled, whether it waited or not.</summary>
    internal int CanceledGeneration { get; set; } = -1;

    /// <summary>Held open until the wait ends, whoever closes it meanwhile; <see langword="null"/> while it does not wait.</summary>
    internal SafeFileHandle? File { get; set; }

    internal int Descriptor { get; set; }

    /// <summary>POLLIN or POLLOUT.</summary>
    internal short Events { get; set; }

    /// <summary>The next one that waits for the same descriptor.</summary>
    internal DescriptorWait? NextOfDescriptor { get; set; }
}
