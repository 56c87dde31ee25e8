using System.Diagnostics;
using Pipelines.File;

namespace FilePipelines.TwoCallers.Tests;

/// <summary>
/// Every two calls of a reader of a followed file, in every order with what happens to the file meanwhile: <see cref="FollowedOrder"/>.
/// </summary>
[Collection("whole process")]
public sealed class TwoFollowerCallersTests
{
    public static MatrixTheoryData<FollowedCall, FilePipeBackend, bool> Situations { get; } = new(
        Enum.GetValues<FollowedCall>(), [FilePipeBackend.UnixThreads, FilePipeBackend.Overlapped], [false, true]);

    [Theory]
    [MemberData(nameof(Situations))]
    [Trait("Category", Exploration.Category)]
    public async Task TwoCalls_InEveryOrderWithWhatHappensToTheFile_LoseNothingAndEnd(
        FollowedCall first, FilePipeBackend kind, bool isWatched)
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "The back end is scripted, the same on every system; Wine takes minutes.");
        using TempFolder folder = new();
        await OrderThread.RunAsync(() =>
        {
            Stopwatch time = Stopwatch.StartNew();
            long orders = 0;
            foreach (FollowedSecondCall second in Enum.GetValues<FollowedSecondCall>())
            {
                Choices choices = new();
                int left = Exploration.MostOrders;
                do
                {
                    using FollowedOrder order = new(first, second, kind, isWatched, folder.File("log"), choices);
                    order.Run();
                    orders++;
                }
                while (--left > 0 && choices.MoveNext());
            }

            Console.WriteLine($"{orders} orders of two calls of a follower: {first}, {kind}, {(isWatched ? "watched" : "not watched")}, "
                + $"{time.ElapsedMilliseconds} ms.");
        });
    }
}
