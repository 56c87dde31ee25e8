using FilePipelinesBenchmarks.Reporting.Chapters;

namespace FilePipelinesBenchmarks.Follow;

/// <summary><c>follow</c>: how late lines are, and what idle files cost, as CSV. Linux.</summary>
internal static class FollowCommand
{
    internal static async Task<int> RunAsync(string[] arguments)
    {
        if (arguments.Length > 0)
        {
            await Console.Error.WriteLineAsync($"follow does not understand '{arguments[0]}': it takes no arguments.");
            return 2;
        }

        Console.Write(FollowChapter.ToCsv(await FollowMeasurement.RunAsync(FollowMeasurement.DefaultTime, static () => { })));
        return 0;
    }
}
