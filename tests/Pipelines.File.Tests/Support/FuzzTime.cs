using System.Globalization;

namespace FilePipelinesTests;

/// <summary>
/// How long a differential fuzzer goes on, and where it begins: a second from a seed of its own, or as PIPELINES_FILE_FUZZ_SECONDS and PIPELINES_FILE_FUZZ_SEED say. A failure names the seed.
/// </summary>
internal static class FuzzTime
{
    public static double Seconds { get; }
        = double.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_FUZZ_SECONDS"), CultureInfo.InvariantCulture, out double given) ? given : 1;

    public static int Seed { get; }
        = int.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_FUZZ_SEED"), CultureInfo.InvariantCulture, out int given) ? given : Random.Shared.Next();
}
