namespace FilePipelines.Tests;

/// <summary>Tests with a folder of their own, which is gone when they are over.</summary>
public abstract class FileTests : IDisposable
{
    private protected readonly TempFolder _folder = new();
    private protected readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public virtual void Dispose()
    {
        _folder.Dispose();
        GC.SuppressFinalize(this);
    }
}
