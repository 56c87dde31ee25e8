namespace Pipelines.File.IO;

/// <summary>
/// An operation of <see cref="OverlappedFile"/>: its overlapped, which is where it is for as long as this object lives, and the event that
/// is set when a call ends.
/// </summary>
[SupportedOSPlatform("windows")]
internal sealed unsafe class OverlappedRequest(OverlappedFile file) : FileRequest
{
    private readonly NativeOverlapped[] _overlapped = GC.AllocateArray<NativeOverlapped>(1, pinned: true);

    internal OverlappedFile File => file;

    internal NativeOverlapped* Overlapped => (NativeOverlapped*)Unsafe.AsPointer(ref _overlapped[0]);

    internal ManualResetEvent Ended { get; } = new(initialState: false);

    /// <summary>The call is under way, and nobody waits for its end yet. Owned as the operation is.</summary>
    internal bool IsBegun { get; set; }

    /// <summary>
    /// Asked before the call is made, and again when it is under way: whoever cancels looks for the call only after it has said so.
    /// </summary>
    internal bool IsCancelWanted => CanceledGeneration == Generation;

    /// <summary><see langword="true"/>: this use of it is canceled, and its call, if it is under way, is to be canceled.</summary>
    internal bool TryCancel(int generation)
    {
        lock (this)
        {
            CanceledGeneration = Generation == generation ? generation : CanceledGeneration;
            return CanceledGeneration == generation;
        }
    }

    protected override void Recycle() => file.Keep(this);
}
