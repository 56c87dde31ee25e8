namespace FilePipelines.Tests;

/// <summary>
/// How often a test does again what depends on chance: fewer times in the quick run, and as often as it takes to find what is rare in the
/// long one, where PIPELINES_FILE_LONG is 1.
/// </summary>
internal static class Rounds
{
    public static bool AreMany { get; } = Environment.GetEnvironmentVariable("PIPELINES_FILE_LONG") == "1";

    public static int Of(int few, int many) => AreMany ? many : few;
}
