using System.Globalization;

namespace FilePipelines.Tests;

/// <summary>How long the stress tests go on: two seconds, or as long as PIPELINES_FILE_STRESS_SECONDS says.</summary>
internal static class StressTime
{
    /// <summary>The trait of what takes long, and is left out by <c>dotnet test</c>: <c>Category</c>.</summary>
    public const string Category = "Long";

    /// <summary>How much longer a stress test may take: only what hangs takes that long.</summary>
    public static readonly TimeSpan Grace = TimeSpan.FromMinutes(2);

    public static double Seconds { get; }
        = double.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_STRESS_SECONDS"), CultureInfo.InvariantCulture,
            out double given) ? given : 2;

    /// <summary>Awaits a stress test, and fails where it hangs.</summary>
    /// <param name="stress">What goes on for <see cref="Seconds"/>, and then ends.</param>
    /// <param name="what">What repeats it, for the message.</param>
    public static async Task BoundedAsync(Task stress, string what = "")
    {
        TimeSpan limit = TimeSpan.FromSeconds(Seconds) + Grace;
        try
        {
            await stress.WaitAsync(limit, TestContext.Current.CancellationToken);
        }
        catch (TimeoutException) when (!stress.IsCompleted)
        {
            Assert.Fail($"It hangs: it is not over after {limit.TotalSeconds} s. {what}");
        }
    }
}
