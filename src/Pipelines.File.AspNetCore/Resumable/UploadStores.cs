using System.Collections.Concurrent;
using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// The folders of the uploads of one pattern: one, or one for each that a request was for. Any thread may call its members.
/// </summary>
internal sealed class UploadStores
{
    internal const string Category = "Pipelines.File.AspNetCore.Resumable";

    // The folders of an application, each with those of its pattern: one store counts what is in a folder.
    private static readonly ConditionalWeakTable<IServiceProvider, ConcurrentDictionary<string, UploadStores>> s_folders = [];

    private readonly ResumableUploadOptions _options;
    private readonly TimeProvider _time;
    private readonly ConcurrentDictionary<string, UploadStores> _folders;
    private readonly CancellationToken _stopping;
    private readonly UploadStore? _only;
    // Guarded by itself.
    private readonly Dictionary<string, UploadStore> _stores = new(StringComparer.Ordinal);

    /// <exception cref="ArgumentException">Another pattern has its uploads in the folder.</exception>
    internal UploadStores(ResumableUploadOptions options, IServiceProvider services)
    {
        _options = options;
        _time = services.GetService<TimeProvider>() ?? TimeProvider.System;
        _folders = s_folders.GetOrCreateValue(services);
        _stopping = services.GetService<IHostApplicationLifetime>()?.ApplicationStopping ?? CancellationToken.None;
        Logger = services.GetService<ILoggerFactory>()?.CreateLogger(Category) ?? NullLogger.Instance;
        _only = options.FolderOf is null ? Make(NameOf(options.Folder)) : null;
    }

    internal ILogger Logger { get; }

    /// <summary>The store of a request; <see langword="null"/>: there is none.</summary>
    internal UploadStore? Of(HttpContext context)
        => _only ?? (_options.FolderOf!(context) is { } folder ? OfFolder(NameOf(folder)) : null);

    private static string NameOf(string folder) => Path.TrimEndingDirectorySeparator(Path.GetFullPath(folder));

    private UploadStore OfFolder(string folder)
    {
        lock (_stores)
        {
            if (!_stores.TryGetValue(folder, out UploadStore? store))
            {
                _stores.Add(folder, store = Make(folder));
            }

            return store;
        }
    }

    private UploadStore Make(string folder)
    {
        if (_folders.GetOrAdd(folder, this) != this)
        {
            throw new ArgumentException($"The uploads of another pattern are in the folder '{folder}'.");
        }

        UploadStore store = new(_options, _time, Logger, folder);
        _stopping.Register(store.Dispose);
        return store;
    }
}
