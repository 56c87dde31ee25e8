namespace FilePipelines.Tests;

/// <summary>Tests with the folder of a journal of their own, within another folder that is gone when each is over.</summary>
public abstract class InAJournal : IDisposable
{
    private protected readonly TempFolder _temp = new();
    private protected readonly CancellationToken _stop = TestContext.Current.CancellationToken;
    private protected readonly string _folder;

    private protected InAJournal() => _folder = _temp.File("journal");

    public virtual void Dispose()
    {
        _temp.Dispose();
        GC.SuppressFinalize(this);
    }
}
