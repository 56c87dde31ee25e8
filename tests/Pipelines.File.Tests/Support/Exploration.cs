using System.Globalization;

namespace FilePipelines.Tests;

/// <summary>
/// How many orders of two calls the explorations try: every one, which takes minutes, where PIPELINES_FILE_EXPLORE is <c>all</c>, or the
/// first ones, as many as it says.
/// </summary>
internal static class Exploration
{
    /// <summary>The trait of what they are: <c>Category</c>.</summary>
    public const string Category = "Exploration";

    /// <summary>How many orders of one pair of calls are tried.</summary>
    public static int MostOrders { get; } = Environment.GetEnvironmentVariable("PIPELINES_FILE_EXPLORE") switch
    {
        null or "" => 40,
        "all" => int.MaxValue,
        { } number => int.Parse(number, CultureInfo.InvariantCulture),
    };
}
