using Microsoft.AspNetCore.OutputCaching;
using Microsoft.Extensions.Caching.Distributed;

namespace FilePipelines.AspNetCore.Tests.Caching;

/// <summary>Tests of caches in a folder of their own, with a clock that goes as they say.</summary>
public abstract class InACache : InARoot
{
    private readonly List<ServiceProvider> _providers = [];

    private protected ManualTime Time { get; } = new();

    private protected virtual string Folder => PathOf("entries");

    public override async ValueTask DisposeAsync()
    {
        _providers.ForEach(provider => provider.Dispose());
        await base.DisposeAsync();
        GC.SuppressFinalize(this);
    }

    private protected IOutputCacheBufferStore Store(long maxSize = 1L << 30)
        => Assert.IsAssignableFrom<IOutputCacheBufferStore>(Provider(services => services.AddFileOutputCache(options =>
        {
            options.Folder = Folder;
            options.MaxSize = maxSize;
        })).GetRequiredService<IOutputCacheStore>());

    private protected IDistributedCache Distributed()
        => Provider(services => services.AddFileDistributedCache(options => options.Folder = Folder))
            .GetRequiredService<IDistributedCache>();

    private protected ServiceProvider Provider(Action<IServiceCollection> add)
    {
        ServiceCollection services = new();
        services.AddSingleton<TimeProvider>(Time);
        add(services);
        _providers.Add(services.BuildServiceProvider());
        return _providers[^1];
    }
}
