using Pipelines.File;

namespace TailSample;

/// <summary>The names that are followed: those that were given, and what comes to match a pattern.</summary>
internal sealed class Names(Settings settings, Output output)
{
    private static readonly TimeSpan s_pause = TimeSpan.FromMilliseconds(250);

    private readonly HashSet<string> _known = new(OperatingSystem.IsWindows() ? StringComparer.OrdinalIgnoreCase : StringComparer.Ordinal);
    private readonly List<Task> _tailed = [];

    /// <summary>Follows all of them until that is canceled, or one of them fails.</summary>
    internal async Task RunAsync(CancellationToken cancellationToken)
    {
        bool isStart = true;
        bool hasPatterns = settings.Names.Any(IsPattern);
        while (true)
        {
            foreach (string given in settings.Names)
            {
                (string Path, string Shown)[] matches = [.. Matches(given)];
                if (isStart && matches.Length == 0)
                {
                    await Console.Error.WriteLineAsync($"Tail: waiting for '{given}'");
                }

                foreach ((string path, string shown) in matches)
                {
                    if (!_known.Contains(path) && !(IsPattern(given) && FileIdentity.TryGet(path, out FileIdentity identity) && await output.IsOfAnotherNameAsync(path, identity)))
                    {
                        _known.Add(path);
                        TailedFile file = new(path, shown, isStart && File.Exists(path), settings, output);

                        // Not here: there may be much to read already.
                        _tailed.Add(Task.Run(() => file.RunAsync(cancellationToken), CancellationToken.None));
                    }
                }
            }

            isStart = false;
            Task pause = Task.Delay(hasPatterns ? s_pause : Timeout.InfiniteTimeSpan, cancellationToken);
            await await Task.WhenAny([pause, .. _tailed]);
        }
    }

    /// <summary>Waits until every one has ended, however.</summary>
    internal Task EndAsync() => Task.WhenAll(_tailed);

    private static bool IsPattern(string name) => Path.GetFileName(name.AsSpan()).ContainsAny('*', '?');

    private static IEnumerable<(string Path, string Shown)> Matches(string given)
    {
        if (!IsPattern(given))
        {
            return [(Path.GetFullPath(given), given)];
        }

        string folder = Path.GetDirectoryName(given) is { Length: > 0 } named ? named : ".";
        try
        {
            return [.. Directory.EnumerateFiles(folder, Path.GetFileName(given)).Order(StringComparer.Ordinal)
                .Select(path => (Path.GetFullPath(path), folder == "." ? Path.GetFileName(path) : path))];
        }
        catch (DirectoryNotFoundException)
        {
            return [];
        }
    }
}
