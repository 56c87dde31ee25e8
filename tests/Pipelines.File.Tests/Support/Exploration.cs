namespace FilePipelinesTests;

/// <summary>
/// Whether the long explorations run whole, which takes minutes: where PIPELINES_FILE_EXPLORE is 1, as in .ci/run. Else they take their
/// first orders only.
/// </summary>
internal static class Exploration
{
    /// <summary>The trait of what they are: <c>Category</c>.</summary>
    public const string Category = "Exploration";

    public static bool IsWhole { get; } = Environment.GetEnvironmentVariable("PIPELINES_FILE_EXPLORE") == "1";

    /// <summary>How many orders of one pair of calls are tried.</summary>
    public static int MostOrders => IsWhole ? int.MaxValue : 40;
}
