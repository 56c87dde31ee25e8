using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Reading;

/// <summary>What a call has decided under the reader's lock and does without it, because it may wait or run a caller's code.</summary>
internal struct AfterLock
{
    /// <summary>Segments that go back to their pool.</summary>
    internal FileSegment? Freed;

    /// <summary>Whether memory and handle are to be released: the reader is completed, and no call is running.</summary>
    internal bool Releases;

    /// <summary>
    /// The loop to wake: a read is set up that has to wait or that reads ahead. Looked up under the lock, because the first use creates it.
    /// </summary>
    internal WaitingReads? Starts;

    /// <summary>Ends a read that nobody waits for any more.</summary>
    internal Cancellation Cancellation;

    /// <summary>The wait that is over, and what it ends with.</summary>
    internal PendingResult<ReadResult>? Wait;
    internal ReadResult Result;
    internal Exception? Error;

    /// <summary>
    /// Whether this is a thread of the application: the wait's result is set before the call returns, and not by a work item.
    /// </summary>
    internal bool IsOnCallersThread;
}
