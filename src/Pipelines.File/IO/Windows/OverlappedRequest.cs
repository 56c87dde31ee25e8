namespace Pipelines.File.IO;

/// <summary>
/// An operation of <see cref="OverlappedFile"/>: its overlapped, and who has yet to come by before it is reported.
/// </summary>
/// <remarks>
/// <para>The race between "the call has returned" and "the completion has run" is settled here. Two have to come by before an operation is reported: the thread that
/// began it, when it has left (<see cref="TryLeave"/>), and the completion, when the system is done with the memory and the overlapped (<see cref="TryArrive"/>). Whoever comes
/// second reports; whoever comes first touches nothing from then on, since the owner may have begun the next operation, or be gone.</para>
/// <para>Which of the two frees the overlapped is no race: the answer of the call says whether a completion comes, and if it comes, it frees.</para>
/// <para>The runtime holds what a preallocated overlapped refers to until that is disposed. So it refers to this operation, and by that to the reader or writer and the open file, only
/// while a completion may come; a reader that is forgotten is collected, and the finalizer here disposes the overlapped.</para>
/// </remarks>
[SupportedOSPlatform("windows")]
internal sealed unsafe class OverlappedRequest : FileRequest, IDisposable
{
    // The bits of _state; above them is the generation that they are for.

    /// <summary>The operation is with the system, or on its way there.</summary>
    private const long Issued = 1;

    /// <summary>The thread that began the operation has no more to do with it.</summary>
    private const long Left = 2;

    /// <summary>The completion has run; what came of it is recorded.</summary>
    private const long Arrived = 4;

    /// <summary>A cancellation came. It stays until the next generation, so that an operation which is not issued yet, or is being issued, is canceled as well.</summary>
    private const long CancelWanted = 8;

    private const int GenerationShift = 8;

    // What the runtime holds.
    private readonly UnderWay _underWay = new();

    // Interlocked.
    private long _state;

    // For writes that are waited for in place. Owned by the thread that makes the call.
    private ManualResetEvent? _event;

    internal OverlappedRequest(OverlappedFile backend, IOCompletionCallback onCompletion)
    {
        Backend = backend;
        Preallocated = PreAllocatedOverlapped.UnsafeCreate(onCompletion, _underWay, pinData: null);
    }

    ~OverlappedRequest() => Preallocated?.Dispose();

    internal OverlappedFile Backend { get; }

    /// <summary>Serves one call at a time.</summary>
    internal PreAllocatedOverlapped Preallocated { get; }

    /// <summary>The overlapped of the last call, which stays where it is: a cancellation only ever compares with it.</summary>
    internal NativeOverlapped* Overlapped { get; set; }

    /// <summary>Whether the call was made, so that its thread has yet to leave. Asked by the owner's thread before it starts the operation.</summary>
    internal bool IsBegun => (Volatile.Read(ref _state) & Issued) != 0;

    /// <summary>
    /// The event for an overlapped that is waited for in place. Its low bit is set, so that no completion is queued to the port (GetQueuedCompletionStatus).
    /// </summary>
    internal nint Event => (_event ??= new ManualResetEvent(initialState: false)).SafeWaitHandle.DangerousGetHandle() | 1;

    /// <summary>The operation of a completion that has come, which holds it no more.</summary>
    internal static OverlappedRequest Arrive(NativeOverlapped* overlapped)
    {
        UnderWay underWay = (UnderWay)ThreadPoolBoundHandle.GetNativeOverlappedState(overlapped)!;
        OverlappedRequest operation = underWay.Operation!;
        underWay.Operation = null;
        return operation;
    }

    /// <summary>A call is about to be made, or has been (<see langword="false"/>), whose completion may come.</summary>
    internal void Hold(bool isUnderWay) => _underWay.Operation = isUnderWay ? this : null;

    /// <summary>Its back end has no more use for it.</summary>
    public void Dispose()
    {
        Preallocated.Dispose();
        _event?.Dispose();
        GC.SuppressFinalize(this);
    }

    /// <summary>Before the call is made. <see langword="false"/>: it was canceled, and is not to be made.</summary>
    internal bool TryIssue()
    {
        while (true)
        {
            long state = Volatile.Read(ref _state);
            if (IsOfThisGeneration(state) && (state & CancelWanted) != 0)
            {
                return false;
            }

            if (Interlocked.CompareExchange(ref _state, ((long)Generation << GenerationShift) | Issued, state) == state)
            {
                return true;
            }
        }
    }

    /// <summary>The call was not made, or has finished without a completion: nothing of it is under way.</summary>
    internal void Withdraw() => Interlocked.And(ref _state, ~(Issued | Left | Arrived));

    /// <summary>
    /// The thread that made the call leaves the operation. <see langword="true"/>: the completion was here before, and reporting is this thread's.
    /// <see langword="false"/>: the completion will report, or has by now.
    /// </summary>
    internal bool TryLeave() => (Interlocked.Or(ref _state, Left) & Arrived) != 0;

    /// <summary>Whether a cancellation has come that may have found no call to cancel. Asked after the call was made, before <see cref="TryLeave"/>.</summary>
    internal bool IsCancelWanted => (Volatile.Read(ref _state) & (CancelWanted | Arrived)) == CancelWanted;

    /// <summary>The completion has run. <see langword="true"/>: reporting is this thread's.</summary>
    internal bool TryArrive() => (Interlocked.Or(ref _state, Arrived) & Left) != 0;

    internal bool HasArrived => (Volatile.Read(ref _state) & Arrived) != 0;

    /// <summary><see langword="true"/>: the call of that generation is with the system and is to be canceled there.</summary>
    internal bool TryCancel(int generation)
    {
        while (true)
        {
            if (Generation != generation)
            {
                return false;
            }

            long state = Volatile.Read(ref _state);
            long current = IsOfThisGeneration(state) ? state : (long)generation << GenerationShift;
            if (Interlocked.CompareExchange(ref _state, current | CancelWanted, state) == state)
            {
                return (current & (Issued | Arrived)) == Issued;
            }
        }
    }

    protected override void Perform() => Backend.Perform(this);

    protected override void Recycle() => Backend.Keep(this);

    private bool IsOfThisGeneration(long state) => (int)(state >> GenerationShift) == Generation;

    /// <summary>The state of the preallocated overlapped.</summary>
    private sealed class UnderWay
    {
        /// <summary>Written before the call, and by whoever knows that no completion comes any more.</summary>
        internal OverlappedRequest? Operation;
    }
}
