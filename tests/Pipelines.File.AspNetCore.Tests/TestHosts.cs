using System.Runtime.CompilerServices;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>What all servers of the tests have in common.</summary>
internal static class TestHosts
{
    /// <summary>
    /// No server reads its configuration again when a file changes: each would hold an inotify(7) instance, of which a user has 128, and
    /// tests of a machine that is in use would fail. Processes that tests start inherit it.
    /// </summary>
    [ModuleInitializer]
    internal static void WatchesNoConfiguration()
        => Environment.SetEnvironmentVariable("DOTNET_hostBuilder__reloadConfigOnChange", "false");
}
