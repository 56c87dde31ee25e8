using System.Diagnostics.Metrics;

namespace FilePipelines.Tests;

/// <summary>The meter "Pipelines.File.Logs" as a listener sees it.</summary>
[Collection("whole process")]
public sealed class LogFollowerMeterTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly MeterListener _listener = new();
    private readonly ConcurrentDictionary<string, long> _seen = new();

    public LogFollowerMeterTests()
    {
        _listener.InstrumentPublished = static (instrument, listener) =>
        {
            if (instrument.Meter.Name == "Pipelines.File.Logs")
            {
                listener.EnableMeasurementEvents(instrument);
            }
        };
        _listener.SetMeasurementEventCallback<long>((instrument, value, _, _) => _seen[instrument.Name] = value);
        _listener.Start();
    }

    public void Dispose()
    {
        _listener.Dispose();
        _folder.Dispose();
    }

    [Fact]
    public async Task Instruments_HaveTheseNamesAndCountLinesFilesAndBytes()
    {
        string path = _folder.File("service.log");
        await File.WriteAllTextAsync(path, "one\ntwo\n", TestContext.Current.CancellationToken);
        await using (FollowedLog log = new(path))
        {
            // The meter begins with the first follower of the process.
            await log.ExpectAsync("one");
            long lines = Read("lines");
            Assert.Equal(
                ["pipelines.file.logs.behind", "pipelines.file.logs.files", "pipelines.file.logs.gaps", "pipelines.file.logs.lines",
                    "pipelines.file.logs.rotations", "pipelines.file.logs.skipped"],
                _seen.Keys.Order(StringComparer.Ordinal));
            await log.ExpectAsync("two");
            await File.AppendAllTextAsync(path, "three\n", TestContext.Current.CancellationToken);
            await log.ExpectAsync("three");
            Assert.Equal(1, Read("lines") - lines);
            Assert.InRange(Read("files"), 1, long.MaxValue);
        }
    }

    private long Read(string name)
    {
        _listener.RecordObservableInstruments();
        return _seen["pipelines.file.logs." + name];
    }
}
