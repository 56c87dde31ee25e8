namespace Pipelines.File.Threading;

/// <summary>
/// The execution context of loops that live with a reader or a writer: the default one, so that no value of an AsyncLocal of a caller's,
/// and no handler of its changes, comes to the library's threads. An async method that begins here goes on here, whoever resumes it, so no
/// call suppresses the flow, which allocates where the caller has such values.
/// </summary>
internal static class LibraryContext
{
    // Null where the system had no thread to ask.
    private static readonly ExecutionContext? s_default = CaptureDefault();

    /// <summary>Begins an async method.</summary>
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

    /// <summary>Nothing tells the default context but a thread that has got no other.</summary>
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
            // Without threads little else works either.
        }

        return context;
    }
}
