using System.Diagnostics.Metrics;
using System.Reflection;

namespace Pipelines.File.Diagnostics;

/// <summary>
/// The counters of the meter "Pipelines.File". Every instrument but the histogram is observable: a listener reads the counters on its own
/// thread. So counting calls no listener, and is allowed on any thread and under any lock.
/// </summary>
internal static partial class FilePipeMetrics
{
    // Each counter is updated by itself: a listener may see a read whose bytes are not counted yet.
    internal static readonly Count ReadsInline = new();
    internal static readonly Count ReadsHandedOver = new();
    internal static readonly Count BytesRead = new();
    internal static readonly Count Writes = new();
    internal static readonly Count BytesWritten = new();
    internal static readonly Count FlushesPaused = new();
    internal static readonly Count Syncs = new();
    internal static readonly Count PoolAllocated = new();
    internal static readonly Count PoolReleased = new();

    private static Histogram<double>? s_durations;

    // Volatile: set when the histogram is.
    private static bool s_hasMeter;

    /// <summary>
    /// The meter is created, on a thread of the pool, when the assembly with the listeners is loaded: until then nobody can listen, and
    /// creating the meter takes as long as everything else that the first file of a process needs. Listeners also get what was counted
    /// before.
    /// </summary>
    static FilePipeMetrics()
    {
        AppDomain.CurrentDomain.AssemblyLoad += OnLoad;
        foreach (Assembly assembly in AppDomain.CurrentDomain.GetAssemblies())
        {
            OnLoad(null, new(assembly));
        }
    }

    internal static void FellBack(string call, int error) => Fallbacks.Counts.AddOrUpdate((call, error), 1, static (_, count) => count + 1);

    /// <summary>How the listeners' threads get the levels that other rooms have; until then they are 0.</summary>
    internal static Func<long>? PoolRetained { get; set; }

    /// <summary>How they get the calls that threads of the library's own perform, by kind.</summary>
    internal static Func<IEnumerable<(string Kind, long Ended, int Threads, int Queued, int UnderWay)>> Waiting { get; set; }
        = static () => [];

    /// <summary>
    /// Counts a call, of the kind of <paramref name="count"/>, that was queued at this <see cref="Stopwatch"/> timestamp and has ended now.
    /// Its duration is recorded by the application's pool, because recording runs the code of listeners.
    /// </summary>
    internal static void Waited(string kind, Count count, long queuedAt)
    {
        count.Add();
        if (Volatile.Read(ref s_hasMeter))
        {
            RecordElsewhere(kind, queuedAt);
        }
    }

    // By itself: compiling what names the histogram's type loads its assembly, which fails where no descriptor is left.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void RecordElsewhere(string kind, long queuedAt)
    {
        if (s_durations!.Enabled)
        {
            ThreadPool.UnsafeQueueUserWorkItem(
                static wait => Record(wait.Kind, wait.Duration), (Kind: kind, Duration: Stopwatch.GetElapsedTime(queuedAt)),
                preferLocal: false);
        }
    }

    private static void OnLoad(object? sender, AssemblyLoadEventArgs loaded)
    {
        if (loaded.LoadedAssembly.FullName?.StartsWith("System.Diagnostics.DiagnosticSource,", StringComparison.Ordinal) == true)
        {
            AppDomain.CurrentDomain.AssemblyLoad -= OnLoad;
            ThreadPool.UnsafeQueueUserWorkItem(static _ => TryMakeMeter(), null);
        }
    }

    private static void TryMakeMeter()
    {
        try
        {
            MakeMeter();
        }
        catch (Exception)
        {
            // A listener, which is called when an instrument is created, has thrown, or an assembly could not be loaded without
            // descriptors. Here nobody has called it, so it would end the process. Files are read and written without the meter.
        }
    }

    private static void Record(string kind, TimeSpan duration)
    {
        try
        {
            s_durations!.Record(duration.TotalSeconds, Instruments.Tag(kind));
        }
        catch (Exception)
        {
            // A listener has thrown. Here nobody has called it, so it would end the process.
        }
    }

    /// <summary>A count since the process began, or of one object. Any thread may add to it and read it.</summary>
    /// <param name="all">The count that this is a part of.</param>
    internal sealed class Count(Count? all = null)
    {
        private long _value;

        internal long Value => Volatile.Read(ref _value);

        internal void Add(long number = 1)
        {
            Interlocked.Add(ref _value, number);
            all?.Add(number);
        }
    }
}
