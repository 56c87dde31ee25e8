using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace Pipelines.File;

/// <summary>Opens a journal when a host starts, or before, and closes it when all that may append has stopped.</summary>
internal sealed class JournalHost(IServiceProvider provider, string name, Action<JournalOptions>? configure)
    : IHostedLifecycleService, IAsyncDisposable, IDisposable
{
    private readonly Lock _gate = new();
    private Task<Journal>? _opening;

    /// <summary>The journal. Blocks until it is open: services are made without await.</summary>
    internal Journal Open() => OpenAsync().GetAwaiter().GetResult();

    public Task StartingAsync(CancellationToken cancellationToken) => OpenAsync().WaitAsync(cancellationToken);

    public Task StartAsync(CancellationToken cancellationToken) => StartingAsync(cancellationToken);

    public Task StartedAsync(CancellationToken cancellationToken) => Task.CompletedTask;

    public Task StoppingAsync(CancellationToken cancellationToken) => Task.CompletedTask;

    public Task StopAsync(CancellationToken cancellationToken) => Task.CompletedTask;

    public Task StoppedAsync(CancellationToken cancellationToken) => DisposeAsync().AsTask().WaitAsync(cancellationToken);

    /// <summary>Closes the journal also where the host did not start, and so does not stop.</summary>
    public async ValueTask DisposeAsync()
    {
        Task<Journal>? opening;
        lock (_gate)
        {
            opening = _opening;
        }

        if (opening is not null)
        {
            await ((Task)opening).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
            if (opening.IsCompletedSuccessfully)
            {
                await opening.Result.DisposeAsync().ConfigureAwait(false);
            }
        }
    }

    public void Dispose() => DisposeAsync().AsTask().GetAwaiter().GetResult();

    private Task<Journal> OpenAsync()
    {
        lock (_gate)
        {
            // Who asks after a failure tries again, as for every service that could not be made.
            if (_opening is { IsCompleted: false } or { IsCompletedSuccessfully: true })
            {
                return _opening;
            }

            return _opening = Task.Run(async () =>
            {
                JournalOptions options = new() { Name = name };
                configure?.Invoke(options);
                options.Logger ??= provider.GetService<ILoggerFactory>()?.CreateLogger("Pipelines.File.Journal");
                return await Journal.OpenAsync(options.Folder ?? name, options).ConfigureAwait(false);
            });
        }
    }
}
