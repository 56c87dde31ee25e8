using System.Diagnostics;
using System.Diagnostics.Metrics;

namespace FilePipelines.Tests;

/// <summary>The meter "Pipelines.File.Journal" as a listener sees it.</summary>
[Collection("whole process")]
public sealed class JournalMeterTests : InAJournal
{
    private const string JournalName = "metered";

    private static readonly JournalOptions s_named = new() { Name = JournalName };

    private readonly MeterListener _listener = new();
    private readonly ConcurrentDictionary<string, long> _seen = new();

    public JournalMeterTests()
    {
        _listener.InstrumentPublished = static (instrument, listener) =>
        {
            if (instrument.Meter.Name == "Pipelines.File.Journal")
            {
                listener.EnableMeasurementEvents(instrument);
            }
        };
        _listener.SetMeasurementEventCallback<long>((instrument, value, tags, _) =>
        {
            if (tags.Length == 1 && tags[0] is { Key: "journal", Value: JournalName })
            {
                _seen[instrument.Name] = value;
            }
        });
        _listener.SetMeasurementEventCallback<double>((instrument, value, tags, _) => _seen[instrument.Name] = 1);
        _listener.Start();
    }

    public override void Dispose()
    {
        _listener.Dispose();
        base.Dispose();
    }

    [Fact]
    public async Task Counters_CountRecordsCommitsBytesAndSegmentsAndKeepThemWhenTheJournalIsClosed()
    {
        const int Records = 40;
        const int Size = 1000;
        string folder = _temp.File("journal");

        // The meter begins with the first journal of the process.
        await (await Journal.OpenAsync(folder, s_named, _stop)).DisposeAsync();
        (long Appended, long Committed, long Commits, long Bytes, long Segments) before = Read();
        await using (Journal journal = await Journal.OpenAsync(folder, s_named with { SegmentSize = 16 * 1024 }, _stop))
        {
            for (int i = 0; i < Records; i++)
            {
                await journal.AppendAsync(new byte[Size], _stop);
            }

            (long Appended, long Committed, long Commits, long Bytes, long Segments) open = Read();
            Assert.Equal((Records, Records, Records), (open.Appended - before.Appended, open.Committed - before.Committed,
                open.Commits - before.Commits));
            Assert.Equal(Records * (Size + 32), open.Bytes - before.Bytes);
            Assert.Equal(Directory.GetFiles(folder, "*.journal").Length, open.Segments - before.Segments);
        }

        (long Appended, long Committed, long Commits, long Bytes, long Segments) closed = Read();
        Assert.Equal((Records, Records), (closed.Appended - before.Appended, closed.Committed - before.Committed));
        Assert.Equal(before.Segments, closed.Segments);
    }

    [Fact]
    public async Task Commits_ManyRecordsTogether_AreFewerThanTheRecords()
    {
        await using Journal journal = await Journal.OpenAsync(_temp.File("journal"), s_named, _stop);
        (long Appended, long Committed, long Commits, long Bytes, long Segments) before = Read();
        Task<long>[] appends = [.. Enumerable.Range(0, 500).Select(_ => journal.AppendAsync(new byte[10], _stop).AsTask())];
        await Task.WhenAll(appends);
        (long Appended, long Committed, long Commits, long Bytes, long Segments) after = Read();
        Assert.Equal(500, after.Committed - before.Committed);
        Assert.InRange(after.Commits - before.Commits, 1, 499);
        Assert.InRange(_seen["pipelines.file.journal.commit.records"], 1, 500);
        Assert.Contains("pipelines.file.journal.append.duration", _seen.Keys);
        Assert.Contains("pipelines.file.journal.commit.duration", _seen.Keys);
    }

    [Fact]
    public async Task AppendAsync_ListenerThrows_IsCommitted()
    {
        int thrown = 0;
        _listener.SetMeasurementEventCallback<long>((_, _, _, _) => Throw());
        _listener.SetMeasurementEventCallback<double>((_, _, _, _) => Throw());
        await using (Journal journal = await Journal.OpenAsync(_temp.File("journal"), s_named, _stop))
        {
            Assert.Equal(0, await journal.AppendAsync(new byte[10], _stop));
            Task<long>[] appends = [.. Enumerable.Range(0, 2).Select(_ => journal.AppendAsync(new byte[10], _stop).AsTask())];
            Assert.Equal((long[])[1, 2], await Task.WhenAll(appends));
        }

        Assert.InRange(thrown, 3, int.MaxValue);

        void Throw()
        {
            Interlocked.Increment(ref thrown);
            throw new InvalidOperationException("The listener is broken.");
        }
    }

    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task AppendAsync_ListenerOfActivitiesThrows_IsCommitted(bool atStart)
    {
        int thrown = 0;
        using ActivityListener listener = new()
        {
            ShouldListenTo = static source => source.Name == "Pipelines.File.Journal",
            Sample = static (ref ActivityCreationOptions<ActivityContext> _) => ActivitySamplingResult.AllData,
            ActivityStarted = activity => Throw(atStart && activity.OperationName == "journal append"),
            ActivityStopped = activity => Throw(!atStart && activity.TagObjects.Any(tag => tag.Key == "journal.sequence")),
        };
        ActivitySource.AddActivityListener(listener);
        await using Journal journal = await Journal.OpenAsync(_temp.File("journal"), s_named, _stop);
        Task<long>[] appends = [.. Enumerable.Range(0, 2).Select(_ => journal.AppendAsync(new byte[10], _stop).AsTask())];
        Assert.Equal((long[])[0, 1], await Task.WhenAll(appends));
        Assert.InRange(thrown, 1, int.MaxValue);

        void Throw(bool isNow)
        {
            if (isNow)
            {
                Interlocked.Increment(ref thrown);
                throw new InvalidOperationException("The listener is broken.");
            }
        }
    }

    private (long Appended, long Committed, long Commits, long Bytes, long Segments) Read()
    {
        _listener.RecordObservableInstruments();
        return (Of("appended"), Of("committed"), Of("commits"), Of("bytes"), Of("segments"));

        long Of(string name) => _seen["pipelines.file.journal." + name];
    }
}
