namespace FilePipelines.Tests;

/// <summary>Holds the calls of a script until a test lets them go on.</summary>
internal sealed class Gate : IDisposable
{
    private readonly ManualResetEventSlim _begun = new();
    private readonly ManualResetEventSlim _isOpen = new();

    /// <summary>For a script, or as an action: tells that the call has begun, and waits.</summary>
    public long? Hold(int call)
    {
        Wait();
        return null;
    }

    /// <inheritdoc cref="Hold"/>
    public void Wait()
    {
        _begun.Set();
        _isOpen.Wait(Eventually.Limit);
    }

    /// <summary>Waits until a call has begun.</summary>
    public void WaitForCall() => Assert.True(_begun.Wait(Eventually.Limit, TestContext.Current.CancellationToken));

    public void Open() => _isOpen.Set();

    /// <summary>A test that has failed holds nobody.</summary>
    public void Dispose() => _isOpen.Set();
}
