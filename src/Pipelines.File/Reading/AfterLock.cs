using Pipelines.File.IO;
using Pipelines.File.Memory;
using Pipelines.File.Threading;

namespace Pipelines.File.Reading;

/// <summary>What a call has decided under a reader's lock and does behind it, as it may run a caller's code, or wait.</summary>
internal struct AfterLock
{
    /// <summary>Segments that go back to their pool.</summary>
    internal FileSegment? Freed;

    /// <summary>The reader is completed and nothing is under way: memory and handle are released.</summary>
    internal bool Releases;

    /// <summary>
    /// Where a read is set up that has to wait, or that reads ahead: what has it performed. Looked up under the lock, which guards that it
    /// is made once.
    /// </summary>
    internal WaitingReads? Starts;

    /// <summary>A read that nobody waits for any more.</summary>
    internal Cancellation Cancellation;

    /// <summary>The wait that is over, and what it ends with.</summary>
    internal PendingResult<ReadResult>? Wait;
    internal ReadResult Result;
    internal Exception? Error;

    /// <summary>Whether this is a call of the caller's, so that the result is there when it returns.</summary>
    internal bool IsOnCallersThread;
}
