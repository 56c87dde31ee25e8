namespace Pipelines.File.Threading;

/// <summary>
/// The <see cref="ExecutionContext"/> of the loops of readers and writers. It is the default one, so no AsyncLocal value of a caller, and
/// no handler of its changes, reaches the library's threads. An async method that begins in it resumes in it, whichever thread resumes it.
/// So the callers need no SuppressFlow, which allocates if the caller has AsyncLocal values.
/// </summary>
internal static class LibraryContext
{
    // Null if the system could not start the thread that captures it.
    private static readonly ExecutionContext? s_default = CaptureDefault();

    /// <summary>Captures the context before it is needed.</summary>
    internal static void Prepare()
    {
    }

    /// <summary>Begins an async method in the default context.</summary>
    internal static void Run(ContextCallback begin, object state)
    {
        if (s_default is not null)
        {
            ExecutionContext.Run(s_default, begin, state);
        }
        else
        {
            begin(state);
        }
    }

    /// <summary>Captures the default context on a new thread: there is no other way to get it.</summary>
    private static ExecutionContext? CaptureDefault()
    {
        ExecutionContext? context = null;
        try
        {
            Thread thread = new(() => context = ExecutionContext.Capture(), maxStackSize: 128 * 1024) { IsBackground = true };
            thread.UnsafeStart();
            thread.Join();
        }
        catch (Exception e) when (e is OutOfMemoryException or ThreadStartException)
        {
            // Without a thread the loops run in the caller's context.
        }

        return context;
    }
}
