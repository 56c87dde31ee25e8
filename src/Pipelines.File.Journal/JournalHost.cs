using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace Pipelines.File;

/// <summary>
/// Opens a journal when a host starts, or before, and closes it when all that may append has stopped. If it cannot be opened, whoever asks
/// for it next tries again.
/// </summary>
internal sealed class JournalHost(IServiceProvider provider, string name, Action<JournalOptions>? configure)
    : IHostedLifecycleService, IAsyncDisposable, IDisposable
{
    // Guarded by the lock: the last attempt to open it, and whether the host has stopped, so that there will be no other one.
    private readonly Lock _gate = new();
    private Task<Journal>? _opening;
    private bool _isStopped;

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
            _isStopped = true;
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

    /// <summary>The journal, which is opened if it is not open yet.</summary>
    internal Task<Journal> OpenAsync()
    {
        lock (_gate)
        {
            // Who asks after a failure tries again, as for every service that could not be made.
            if (_opening is null or { IsCompleted: true, IsCompletedSuccessfully: false })
            {
                ObjectDisposedException.ThrowIf(_isStopped, typeof(Journal));
                _opening = Task.Run(OpenNowAsync);
            }

            return _opening;
        }
    }

    private async Task<Journal> OpenNowAsync()
    {
        JournalOptions options = new() { Name = name };
        configure?.Invoke(options);
        options.Logger ??= provider.GetService<ILoggerFactory>()?.CreateLogger("Pipelines.File.Journal");
        return await Journal.OpenAsync(options.Folder ?? name, options).ConfigureAwait(false);
    }
}
