namespace FilePipelinesBenchmarks.Charts;

/// <summary>The colour of each way, the same in every chart. All of them are readable on white and on black; this library's are the warm ones.</summary>
internal static class Palette
{
    internal const string Own = "#e8590c";
    internal const string OwnOther = "#e0930a";

    private static readonly string[] s_others = ["#4d8df5", "#9a6bef", "#d355a0", "#2f9e68", "#12a0ac", "#8b8f3c", "#7f8a96", "#b0705a", "#5c7cfa", "#c2417c"];

    internal static bool IsOwn(string name) => name.StartsWith("FilePipe", StringComparison.Ordinal);

    /// <param name="name">The way's.</param>
    /// <param name="position">Its place among those that are not this library's.</param>
    internal static string ColourOf(string name, int position)
        => !IsOwn(name) ? s_others[position % s_others.Length] : name.Contains(',', StringComparison.Ordinal) || name.Contains(" to FileStream", StringComparison.Ordinal) ? OwnOther : Own;
}
