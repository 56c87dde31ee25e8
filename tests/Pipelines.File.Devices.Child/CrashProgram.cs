namespace FilePipelines.Devices.Child;

/// <summary>
/// Appends and replaces at once, from one seed, until the process is killed. The next start compares the files with the expected state and
/// goes on. Journals, logs that are shipped and uploads are killed by tests of their own.
/// </summary>
internal static class CrashProgram
{
    internal static async Task<int> RunAsync(string folder, int seed)
    {
        using ExpectedState state = new(Path.Combine(folder, "expected"));
        ICrashFeature[] features = Features(folder, state);
        foreach (ICrashFeature feature in features)
        {
            await feature.CheckAsync();
        }

        Console.WriteLine("checked");
        Task[] running = [.. features.Select((feature, i) => Task.Run(() => feature.RunAsync(new Random(HashCode.Combine(seed, i)))))];

        // None of them ends by itself.
        await await Task.WhenAny(running);
        return 4;
    }

    internal static async Task<int> CheckAsync(string folder)
    {
        using ExpectedState state = new(Path.Combine(folder, "expected"));
        foreach (ICrashFeature feature in Features(folder, state))
        {
            await feature.CheckAsync();
        }

        return 0;
    }

    private static ICrashFeature[] Features(string folder, ExpectedState state)
        => [new CrashAppends(folder, state), new CrashReplaces(folder, state)];
}
