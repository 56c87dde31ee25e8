using System.Globalization;

namespace FilePipelinesBenchmarks.Measuring;

/// <summary>Sizes as tables and axes show them.</summary>
internal static class SizeText
{
    /// <summary>512 B, 4 KiB, 1 MiB.</summary>
    internal static string Of(long bytes) => bytes switch
    {
        < 1024 => $"{bytes} B",
        < 1024 * 1024 => $"{bytes / 1024} KiB",
        _ => $"{bytes / (1024 * 1024)} MiB",
    };

    /// <summary>Bytes, to the byte while they are few.</summary>
    internal static string OfAmount(double bytes) => bytes switch
    {
        < 10_000 => string.Create(CultureInfo.InvariantCulture, $"{bytes:N0} B"),
        < 10_000_000 => string.Create(CultureInfo.InvariantCulture, $"{bytes / 1000:N0} kB"),
        _ => string.Create(CultureInfo.InvariantCulture, $"{bytes / 1_000_000:N0} MB"),
    };
}
