namespace FilePipelines.Devices.Tests;

/// <summary>The application's pool has as few threads as it can, and gets no others, until this is disposed.</summary>
internal sealed class FewPoolThreads : IDisposable
{
    private readonly int _most;
    private readonly int _mostForIo;

    internal FewPoolThreads()
    {
        ThreadPool.GetMaxThreads(out _most, out _mostForIo);
        ThreadPool.GetMinThreads(out int least, out _);
        Assert.True(ThreadPool.SetMaxThreads(Math.Max(least, Environment.ProcessorCount), _mostForIo));
    }

    public void Dispose() => ThreadPool.SetMaxThreads(_most, _mostForIo);
}
