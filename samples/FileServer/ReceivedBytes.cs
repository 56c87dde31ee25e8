using System.Diagnostics.Metrics;

namespace FileServerSample;

/// <summary>Tells how many bytes of uploads have come, those of uploads under way included: fileserver_received_total.</summary>
internal sealed class ReceivedBytes : IProgress<long>
{
    private static readonly Meter s_meter = new("Pipelines.File");
    private static long s_received;

    // Of one upload, which reports one step after the other.
    private long _last;

    static ReceivedBytes()
        => s_meter.CreateObservableCounter("fileserver.received", static () => Volatile.Read(ref s_received), "By",
            "Bytes of uploads that have come, those of uploads under way included");

    public void Report(long value)
    {
        Interlocked.Add(ref s_received, value - _last);
        _last = value;
    }
}
