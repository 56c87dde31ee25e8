namespace Pipelines.File.Threading;

/// <summary>Whoever waits for a descriptor.</summary>
internal interface IDescriptorWaiter
{
    /// <summary>Which use of the object waits, since objects are reused and a cancellation may come late.</summary>
    int Generation { get; }

    /// <summary>Called once for each wait that nobody has canceled, on the poller's thread: the descriptor can be read or written, or the time is over. It does not wait.</summary>
    void OnReady();
}

/// <summary>One wait for a descriptor, or for a moment. Reusable; the poller guards it while it waits there.</summary>
internal sealed class DescriptorWait(IDescriptorWaiter waiter)
{
    internal IDescriptorWaiter Waiter { get; } = waiter;

    /// <summary>The generation that was canceled, whether it waited or not.</summary>
    internal int CanceledGeneration { get; set; } = -1;

    /// <summary>Tells this wait from a later one of the same object; 0 while it does not wait.</summary>
    internal long Ticket { get; set; }

    /// <summary>Held open until the wait ends, whoever closes it meanwhile; <see langword="null"/>: only the moment is waited for.</summary>
    internal SafeFileHandle? File { get; set; }

    /// <summary>-1: only the moment is waited for.</summary>
    internal int Descriptor { get; set; }

    /// <summary>POLLIN or POLLOUT.</summary>
    internal short Events { get; set; }

    /// <summary>When the wait ends at the latest, <see cref="Environment.TickCount64"/>.</summary>
    internal long Due { get; set; }

    /// <summary>The next one that waits for the same descriptor.</summary>
    internal DescriptorWait? NextOfDescriptor { get; set; }
}
