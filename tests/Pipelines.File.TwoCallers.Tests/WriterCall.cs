namespace FilePipelines.TwoCallers.Tests;

internal enum WriterCall
{
    GetMemory,
    GetSpan,
    Advance,
    FlushAsync,
    FlushDurableAsync,
    WriteAsync,
    CancelPendingFlush,
    CancelToken,
    Complete,
    CompleteAsync,

    /// <summary>With an exception: what was not flushed is dropped.</summary>
    CompleteAsyncWithError,

    Abort,
    Dispose,
    DisposeAsync,
}
