using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>A log that is truncated while its caller holds a batch, and begins with the same line again.</summary>
public sealed class SameHeaderLogTests : IDisposable
{
    private readonly TempFolder _folder = new();

    public void Dispose() => _folder.Dispose();

    [Theory]
    [InlineData("header\n", false)]
    [InlineData("header\n", true)]
    [InlineData("other\n", true)]
    public async Task CutWhileABatchIsHeld_TheNextBeginsAsTheLast_ItsCopyIsRead(string again, bool isSeen)
    {
        string log = _folder.File("log");
        using GrowingFile file = new(log, "header\n");
        await using FollowedLog lines = new(_folder.File("log*"));
        await lines.ExpectAsync("header");
        _ = lines.StepAsync();
        file.Append("a1\n");
        await lines.ExpectAsync("a1");
        if (isSeen)
        {
            _folder.File("log.5", "stranger\n"u8.ToArray());
            await SeenAsync("logs1");
        }

        // The caller has the batch. The first copy is gone, log.1 is the second, the log begins with the same header.
        file.Cut(0);
        using GrowingFile copy = new(_folder.File("copy"), again + "x1\nx2\n");
        File.Move(copy.Path, log + ".1");
        file.Append(again + "b1\nb2\n");
        await SeenAsync("logs2");
        string head = again.TrimEnd();
        await lines.ExpectAsync(head, "x1", "x2", head, "b1", "b2");

        async Task SeenAsync(string name)
        {
            long files = lines.Statistics.Files;
            _folder.File(name, []);
            await Eventually.TrueAsync(() => lines.Statistics.Files > files);
        }
    }
}
