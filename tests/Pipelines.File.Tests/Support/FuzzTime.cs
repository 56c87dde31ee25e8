using System.Diagnostics;
using System.Globalization;
using FsCheck;
using FsCheck.Fluent;
using Microsoft.FSharp.Core;

namespace FilePipelines.Tests;

/// <summary>
/// The differential fuzzers: a number of cases each, and more of them for as many seconds as PIPELINES_FILE_FUZZ_SECONDS says. A failure
/// names its seed, and PIPELINES_FILE_SEED begins with that.
/// </summary>
internal static class FuzzTime
{
    /// <summary>The trait of what they are: <c>Category</c>.</summary>
    public const string Category = "Fuzz";

    private static readonly double s_seconds
        = double.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_FUZZ_SECONDS"), CultureInfo.InvariantCulture, out double given)
            ? given : 0;

    /// <summary>Where random tests begin.</summary>
    public static int Seed { get; }
        = int.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_SEED"), CultureInfo.InvariantCulture, out int given)
            ? given : Random.Shared.Next();

    /// <summary>Has FsCheck try the cases, which grow up to that size: on Windows a few only, as Wine takes long.</summary>
    public static void Check(Property property, int cases, int endSize)
        => RunAsync(
            seed =>
            {
                int most = OperatingSystem.IsWindows() ? Rounds.Of(cases / 5, cases) : cases;
                Replay replay = new(new Rnd((ulong)seed), FSharpOption<int>.None);
                property.Check(
                    Config.QuickThrowOnFailure.WithMaxTest(most).WithEndSize(endSize).WithReplay(FSharpOption<Replay>.Some(replay)));
                return Task.CompletedTask;
            },
            times: 1).GetAwaiter().GetResult();

    /// <summary>Runs it with one seed after the other. A run that hangs fails.</summary>
    public static async Task RunAsync(Func<int, Task> runAsync, int times)
    {
        Stopwatch time = Stopwatch.StartNew();
        for (int seed = Seed; times > 0 || time.Elapsed.TotalSeconds < s_seconds; seed++)
        {
            try
            {
                await Task.Run(() => runAsync(seed)).WaitAsync(5 * Eventually.Limit);
            }
            catch (Exception e) when (!e.Message.StartsWith("$XunitDynamicSkip$", StringComparison.Ordinal))
            {
                throw new InvalidOperationException($"PIPELINES_FILE_SEED={seed}", e);
            }

            times--;
        }
    }
}
