namespace Pipelines.File;

/// <summary>The folder of a journal that perhaps another process writes.</summary>
/// <param name="folder">The folder.</param>
/// <param name="interval">How often to look for more.</param>
internal sealed class FolderSource(string folder, TimeSpan interval) : IJournalSource
{
    // A reader that has found nothing so often looks less often.
    private const int BusyLooks = 100;
    private const int IdleFactor = 10;

    // What the folder had when it was last listed. A segment that another one follows stays so, so most need no other look.
    private volatile SegmentFile[] _listed = [];

    public SegmentFile[] Segments => _listed = SegmentFile.In(folder);

    public long? Limit => null;

    public SegmentFile? NextOf(SegmentFile segment) => SegmentFile.Next(_listed, segment) ?? SegmentFile.Next(Segments, segment);

    public bool HasNext(SegmentFile segment, long first)
        => SegmentFile.Next(_listed, segment) is not null
            || (first > segment.First && System.IO.File.Exists(Path.Combine(folder, JournalFormat.NameOf(first)))
                && NextOf(segment) is not null);

    public ValueTask WriteOutAsync() => default;

    public void ThrowIfFailed()
    {
        // Only the process that writes knows.
    }

    public async ValueTask<bool> WaitAsync(long sequence, int looks, CancellationToken cancellationToken)
    {
        await Task.Delay(looks < BusyLooks ? interval : interval * IdleFactor, cancellationToken).ConfigureAwait(false);
        return true;
    }
}
