using System.Globalization;

namespace FilePipelinesTests;

/// <summary>How long the stress tests go on: two seconds, or as long as PIPELINES_FILE_STRESS_SECONDS says.</summary>
internal static class StressTime
{
    public static double Seconds { get; }
        = double.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_STRESS_SECONDS"), CultureInfo.InvariantCulture, out double given) ? given : 2;
}
