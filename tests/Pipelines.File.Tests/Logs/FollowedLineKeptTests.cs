// What is kept too long here is what is tested.
#pragma warning disable PF0002

namespace FilePipelines.Tests;

/// <summary>What is kept of a follower's lines beyond the next step of the loop: it throws, and a copy does not.</summary>
public sealed class FollowedLineKeptTests : FileTests
{
    private const int Count = 5000;

    private readonly LogFollower _follower;

    public FollowedLineKeptTests()
    {
        string log = _folder.File("log");
        File.WriteAllText(log, string.Concat(Enumerable.Range(0, Count).Select(static i => $"line {i}\n")));
        _follower = new LogFollower(log, new QuickOptions { IdleTimeout = TimeSpan.FromSeconds(5) });
    }

    [Fact]
    public async Task Lines_Kept_ThrowAndCopiesAreRight()
    {
        List<FollowedLine> kept = [];
        List<FollowedLine> copies = [];
        await foreach (FollowedLine line in _follower.ReadLinesAsync(_stop))
        {
            Assert.True(kept.Count == 0 || Throws(kept[^1]));
            kept.Add(line);
            copies.Add(line.Copy());
        }

        Assert.Equal(Count, kept.Count);
        Assert.All(kept, line => Assert.True(Throws(line)));
        Assert.Equal(Enumerable.Range(0, Count).Select(static i => $"line {i}"), copies.Select(static line => line.ToString()));
        Assert.Equal(kept.Select(static line => line.Checkpoint), copies.Select(static line => line.Checkpoint));
        Assert.Equal(kept.Select(static line => line.Path), copies.Select(static line => line.Path));
    }

    [Fact]
    public async Task Batches_Kept_ThrowAndCopiesAreRight()
    {
        List<(FollowedBatch Batch, IReadOnlyList<FollowedLine> Lines, FollowedLine First)> kept = [];
        List<FollowedBatch> copies = [];
        await foreach (FollowedBatch batch in _follower.ReadBatchesAsync(100, 1 << 20, TimeSpan.FromSeconds(1), _stop))
        {
            Assert.All(kept, static one => Assert.True(Throws(one.First)));
            kept.Add((batch, batch.Lines, batch.Lines[0]));
            copies.Add(batch.Copy());
        }

        Assert.Equal(Count / 100, kept.Count);
        Assert.All(kept, static one =>
        {
            Assert.Throws<InvalidOperationException>(() => one.Batch.Lines[0]);
            Assert.Throws<InvalidOperationException>(() => one.Lines[99]);
            Assert.Throws<InvalidOperationException>(() => one.Lines.ToList());
            Assert.Throws<InvalidOperationException>(() => one.Batch.Copy());
            Assert.True(Throws(one.First));
        });
        Assert.Equal(Enumerable.Range(0, Count).Select(static i => $"line {i}"),
            copies.SelectMany(static batch => batch.Lines).Select(static line => line.ToString()));
        Assert.Equal(kept.Select(static one => (one.Batch.Path, one.Batch.Checkpoint)),
            copies.Select(static batch => (batch.Path, batch.Checkpoint)));
        Assert.All(copies, static batch => Assert.Equal(batch.Checkpoint, batch.Lines[^1].Checkpoint));
    }

    [Fact]
    public async Task Line_OfALoopThatWasLeft_Throws()
    {
        FollowedLine kept = default;
        await foreach (FollowedLine line in _follower.ReadLinesAsync(_stop))
        {
            kept = line;
            break;
        }

        Assert.True(Throws(kept));
        FollowedBatch? left = null;
        await foreach (FollowedBatch batch in _follower.ReadBatchesAsync(10, 100, TimeSpan.Zero, _stop))
        {
            left = batch;
            break;
        }

        Assert.Throws<InvalidOperationException>(() => left!.Lines[0]);
        Assert.Equal("", default(FollowedLine).ToString());
    }

    private static bool Throws(FollowedLine line)
        => Record.Exception(() => line.Bytes.Length.ToString(CultureInfo.InvariantCulture)) is InvalidOperationException
            && Record.Exception(line.ToString) is InvalidOperationException
            && Record.Exception(() => line.Copy()) is InvalidOperationException;
}
