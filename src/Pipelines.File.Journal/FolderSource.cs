namespace Pipelines.File;

/// <summary>The folder of a journal that perhaps another process writes.</summary>
/// <param name="folder">The folder.</param>
/// <param name="interval">How often to look for more.</param>
internal sealed class FolderSource(string folder, TimeSpan interval) : IJournalSource
{
    public SegmentFile[] Segments => SegmentFile.In(folder);

    public long? Limit => null;

    public ValueTask WriteOutAsync() => default;

    public void ThrowIfFailed()
    {
        // Only the process that writes knows.
    }

    public async ValueTask<bool> WaitAsync(long sequence, CancellationToken cancellationToken)
    {
        await Task.Delay(interval, cancellationToken).ConfigureAwait(false);
        return true;
    }
}
