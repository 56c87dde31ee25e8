using System.Globalization;
using FilePipelinesBenchmarks.Charts;
using FilePipelinesBenchmarks.Durable;
using FilePipelinesBenchmarks.Follow;
using FilePipelinesBenchmarks.Measuring;
using FilePipelinesBenchmarks.Published;
using FilePipelinesBenchmarks.Waiting;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>Turns what was measured into the page that is read.</summary>
internal sealed class ReportPage
{
    internal const string Title = "Files through pipelines, measured";

    // Less than this is within what two runs of the same code differ by.
    private const double Visible = 1.03;

    private readonly IReadOnlyDictionary<string, SectionResult> _results;
    private readonly IReadOnlyList<WorkItemDelay> _delays;
    private readonly IReadOnlyList<CommitFigures> _commits;
    private readonly WaitsResult? _waits;
    private readonly IReadOnlyList<FollowFigures> _follows;
    private readonly Surroundings _surroundings;
    private readonly TimeSpan _duration;
    private readonly Page _page = new();

    internal ReportPage(IReadOnlyList<SectionResult> results, IReadOnlyList<WorkItemDelay> delays, IReadOnlyList<CommitFigures> commits, WaitsResult? waits, IReadOnlyList<FollowFigures> follows, Surroundings surroundings, TimeSpan duration)
    {
        _results = results.ToDictionary(result => result.Section.Key);
        _delays = delays;
        _commits = commits;
        _waits = waits;
        _follows = follows;
        _surroundings = surroundings;
        _duration = duration;
    }

    internal Page Write()
    {
        _page.Heading(1, Title);
        Summary();
        Losses();
        Reading();
        Writing();
        Durable();
        Parsing();
        Rest();
        Memory();
        Waits();
        if (_follows.Count > 0)
        {
            FollowSection.Write(_page, _follows);
        }

        Method();
        return _page;
    }

    private void Summary()
    {
        _page.Paragraph(
            "In 2019 the benchmark report of Pipelines.File.Unofficial concluded that no file pipeline is worth having: its adapters cost "
            + $"{Number(Mean2019("PipelineAdapter", isAsynchronous: false))} times a synchronous `FileStream` in the geometric mean of its grid, its native reader {Number(Mean2019("PipelineNative", isAsynchronous: false))} times. "
            + $"This is the same grid on .NET {Environment.Version.Major}, with `FilePipeReader` in it: **{Number(Mean("FilePipeReader", isAsynchronous: false))}** times.");
        _page.Paragraph("Time against `FileStreamSync`, geometric mean of ten points each (five buffer sizes, 4 and 128 MiB, in the page cache; sequential: `FileOptions.SequentialScan`, asynchronous: that and `FileOptions.Asynchronous`). Less than 1 is faster.");
        _page.Table(
            ["way", "2019, sequential", "2019, asynchronous", "now, sequential", "now, asynchronous", "now, allocated"],
            _results[ReportPlan.ReadKey(4, false)].Methods.Select(method => (IReadOnlyList<string>)
            [
                Emphasised(method),
                Past(method, false),
                Past(method, true),
                Emphasised(method, Number(Mean(method, false))),
                Emphasised(method, Number(Mean(method, true))),
                Amount(_results[ReportPlan.ReadKey(4, false)].Of(method).Select(measured => measured.AllocatedBytes)),
            ]));
        _page.Paragraph("What is allocated for one file depends on the buffer size for some: the least and the most of five are given. `pread(2)` is the limit of one call a buffer, with nothing of .NET between.");
        Lines(ReportPlan.ReadGrids[0]);

        string Past(string method, bool isAsynchronous) => method switch
        {
            "FileStreamAsync" => Number(Mean2019("FileStreamAsync", isAsynchronous)),
            "FileStream to Pipe" => Number(Mean2019("PipelineAdapter", isAsynchronous)),
            "FileStreamSync" => "1",
            "FilePipeReader" => $"{Number(Mean2019("PipelineNative", isAsynchronous))} (its native reader)",
            _ => string.Empty,
        };
    }

    // Every point where a way of this library is slower than the baseline, or than the best that .NET has there.
    private void Losses()
    {
        _page.Heading(2, "Where it loses");
        List<IReadOnlyList<string>> rows = [];
        List<string> reasons = [];
        foreach (SectionResult result in _results.Values)
        {
            string[] others = [.. result.Methods.Where(method => !Palette.IsOwn(method) && !IsLimit(method))];
            bool loses = false;
            foreach (string method in result.Methods.Where(Palette.IsOwn))
            {
                List<string> toBaseline = [];
                List<string> toBest = [];
                foreach ((string point, IReadOnlyList<Measured> measured) in result.Points)
                {
                    Spread own = measured.Single(row => row.Name == method).Ratio;
                    if (own.Median > Visible)
                    {
                        toBaseline.Add($"{point}: {Number(own.Median)} ({Number(own.LowerQuartile)}–{Number(own.UpperQuartile)})");
                    }

                    Measured best = measured.Where(row => others.Contains(row.Name) && row.Name != result.Baseline).DefaultIfEmpty(measured[0]).MinBy(row => row.Ratio.Median)!;
                    if (best.Name != result.Baseline && best.Ratio.Median < 1 && own.Median > Visible * best.Ratio.Median && own.LowerQuartile > best.Ratio.UpperQuartile)
                    {
                        toBest.Add($"{point}: {Number(own.Median / best.Ratio.Median)} ({best.Name})");
                    }
                }

                if (toBaseline.Count + toBest.Count > 0)
                {
                    loses = true;
                    rows.Add([result.Section.Title, method, string.Join("; ", toBaseline), string.Join("; ", toBest)]);
                }
            }

            if (loses && !reasons.Contains(result.Section.Reason))
            {
                reasons.Add(result.Section.Reason);
            }
        }

        if (rows.Count == 0)
        {
            _page.Paragraph("In this run, at no point.");
            return;
        }

        _page.Paragraph("Every point where one of this library's ways took longer than its grid's baseline, or than the fastest of the other ways there (if that beats the baseline, and the quartiles do not overlap): its time divided by the other's. The reasons follow.");
        _page.Table(["grid", "way", "against the baseline", "against the fastest other"], rows, isText: true);
        _page.List(reasons);
    }

    private void Reading()
    {
        _page.Heading(2, "Reading: the grid of 2019");
        _page.Paragraph("A file of incrementing 64-bit integers is opened, read to its end and closed; the last eight bytes of every buffer are looked at, and have to be the integer that stands there. Dashed, faint lines are the figures of 2019 (Windows 10, .NET Core 2.1); the pale stroke behind a dot spans the quartiles. The chart of the first table stands at the top.");
        foreach ((int MiB, bool IsAsynchronous) grid in ReportPlan.ReadGrids)
        {
            if (grid != ReportPlan.ReadGrids[0])
            {
                Lines(grid);
            }

            Table(_results[ReportPlan.ReadKey(grid.MiB, grid.IsAsynchronous)]);
        }

        _page.Heading(2, "Reading: every byte touched");
        _page.Paragraph("The same, but the program adds up all the integers, a vector at a time. Where a call brings more than a core's cache holds, the sum has to fetch the bytes again.");
        Table(_results["sum-4"]);
        Table(_results["sum-128"]);

        _page.Heading(2, "Allocation");
        SectionResult small = _results[ReportPlan.ReadKey(4, false)];
        SectionResult large = _results[ReportPlan.ReadKey(128, false)];
        int middle = ReportPlan.BufferSizes.ToList().IndexOf(16384);
        _page.Picture(
            "allocation.svg",
            BarChart.Draw(
                "Allocated for one file with buffers of 16 KiB, by the whole process (logarithmic)",
                [.. new[] { small, large }.Select(result => new BarGroup(result.Section.Title, [.. result.Points[middle].Rows.Select(row => (row.Name, row.AllocatedBytes, SizeText.OfAmount(row.AllocatedBytes)))]))],
                logarithmicFrom: 50),
            "Bars: bytes allocated for one file by each way to read");
    }

    private void Writing()
    {
        _page.Heading(2, "Writing");
        _page.Paragraph("A new file of 100 MiB, written in pieces with a flush after each (for the pipes) or one call a piece (for the others), closed, and its length checked. `FilePipeWriter` hands the bytes over and coalesces them; `written` waits until the system has them at every flush.");
        foreach (bool preallocate in (bool[])[false, true])
        {
            SectionResult result = _results[ReportPlan.WriteKey(preallocate)];
            Lines(result, ReportPlan.FlushSizes, []);
            Table(result);
        }
    }

    private void Durable()
    {
        _page.Heading(2, "Durable");
        _page.Paragraph($"Records of {CommitWay.RecordSize} bytes, each on the device before its producer goes on to the next. The journal is `samples/Journal`: many producers, one `FilePipeWriter`, one sync for all that wait. Beside it every producer has a thread and a place of its own in one file, which has its blocks already, so that a sync writes the data alone; `FlushToDisk` is fsync(2), which also writes the file's times. A ratio compares the commits a second of one round: more is faster.");
        _page.Picture(
            "commits.svg",
            BarChart.Draw("Commits a second (each group has its own scale)", [.. _commits.GroupBy(figures => figures.Producers).Select(group =>
                new BarGroup(Producers(group.Key), [.. group.Select(figures => (figures.Name, figures.PerSecond.Median, figures.PerSecond.Median.ToString("N0", CultureInfo.InvariantCulture)))]))]),
            "Bars: commits a second by each way, with 1, 8 and 64 producers");
        _page.Table(
            ["way", "producers", "commits a second", $"against {_commits[0].Name}", "half of them within", "99 of 100 within"],
            _commits.Select(figures => (IReadOnlyList<string>)
            [
                Emphasised(figures.Name),
                Producers(figures.Producers),
                Emphasised(figures.Name, figures.PerSecond.Median.ToString("N0", CultureInfo.InvariantCulture)),
                $"{Number(figures.Ratio.Median)} ({Number(figures.Ratio.LowerQuartile)}–{Number(figures.Ratio.UpperQuartile)})",
                Time(figures.Median),
                Time(figures.NinetyNinth),
            ]));
        if (_commits.All(figures => !figures.Name.StartsWith("SQLite", StringComparison.Ordinal)))
        {
            _page.Paragraph("SQLite was not built in: `-p:Sqlite=true` where Microsoft.Data.Sqlite restores.");
        }

        Table(_results["durable"]);
        if (_results.TryGetValue("replace", out SectionResult? replace))
        {
            Table(replace);
        }

        static string Producers(int count) => count == 1 ? "1 producer" : $"{count} producers";
    }

    private void Parsing()
    {
        _page.Heading(2, "Parsers");
        _page.Paragraph("The same parser over every way to get at the lines; the limit is the same file already in memory. `StreamReader` gives strings, as programs without pipelines use it.");
        SectionResult[] results = [_results["lines"], _results["ndjson"], _results["csv"]];
        _page.Picture(
            "parsers.svg",
            BarChart.Draw("Time for 64 MiB, milliseconds", [.. results.Select(result => new BarGroup(result.Section.Title, [.. result.Points[0].Rows.Select(row => (row.Name, row.Microseconds.Median, Time(row.Microseconds.Median)))]))]),
            "Bars: time to parse 64 MiB by each way");
        foreach (SectionResult result in results)
        {
            Table(result);
        }
    }

    private void Rest()
    {
        _page.Heading(2, "Copying, small files, a cold cache");
        foreach (string key in (string[])["copy", "small", "cold-sequential", "cold-random"])
        {
            if (_results.TryGetValue(key, out SectionResult? result))
            {
                Table(result);
            }
        }

        if (_delays.Count > 0)
        {
            _page.Paragraph($"Threads that wait for the device cannot do anything else. While the {ReportPlan.RandomReaders} readers were at work, one work item after the other that has nothing to do with them was queued to the thread pool, a millisecond apart, and waited for:");
            _page.Table(
                ["delay of an unrelated work item", "work items", "median", "99 of 100 within", "longest"],
                _delays.Select(delay => (IReadOnlyList<string>)[Emphasised(delay.Name), delay.Samples.ToString("N0", CultureInfo.InvariantCulture), $"{Number(delay.Median)} ms", $"{Number(delay.NinetyNinth)} ms", $"{Number(delay.Longest)} ms"]));
        }
    }

    private void Memory()
    {
        _page.Heading(2, "Memory");
        _page.Paragraph(
            "Content is built in a stream in memory and taken out as an array: FastStream's benchmark of 2019, whose report of 2020 made that 35 to 50 % faster with a third of the memory. Every way has a process of its own here, a new one every round, so that none finds what another has left in the heap; "
            + "one stream after the other is built until its pool, if it has one, and the compiler are warm. RecyclableMemoryStream is Microsoft's 3.0.1 with its default options.");
        SectionResult bytes = _results["memory-bytes"];
        SectionResult doubles = _results["memory-doubles"];
        _page.Picture(
            "memory.svg",
            BarChart.Draw(
                "Time of one stream",
                [.. bytes.Points.Concat(doubles.Points.Select(point => ($"{point.Point} doubles", point.Rows))).Select(point => new BarGroup(point.Item1, [.. point.Rows.Select(row => (row.Name, row.Microseconds.Median / bytes.Section.Operations, Time(row.Microseconds.Median / bytes.Section.Operations)))]))]),
            "Bars: time to build content in memory by each way");
        _page.Paragraph($"In the geometric mean of the six points `PooledMemoryStream` takes **{Number(Mean(bytes, "PooledMemoryStream", bytes.Baseline))}** of the time of `MemoryStream` and **{Number(Mean(bytes, "PooledMemoryStream", "RecyclableMemoryStream"))}** of that of `RecyclableMemoryStream`; "
            + $"for doubles, **{Number(Mean(doubles, "PooledMemoryStream", doubles.Baseline))}** of `MemoryStream` with `BinaryWriter`.");
        Table(bytes);
        Table(doubles);
        _page.Paragraph("Published in FastStream's readme (2019): the same doubles, against `MemoryStream` with `BinaryWriter` then.");
        _page.Table(
            ["way", .. ReportPlan.MemoryDoubles.Select(point => point.Writes.ToString("N0", CultureInfo.InvariantCulture)), "allocated"],
            PublishedBuild.FastStream2019.GroupBy(build => build.Way).Select(group => (IReadOnlyList<string>)
            [
                group.Key,
                .. group.Select(build => PublishedBuild.FastStream2019.First(other => other.Doubles == build.Doubles) is var baseline && baseline == build ? Time(build.Microseconds) : Number(build.Microseconds / baseline.Microseconds)),
                Amount(group.Select(build => build.AllocatedBytes)),
            ]));
        _page.Paragraph("Bytes that one stream allocates beside the array that `ToArray` returns:");
        _page.Table(
            ["way", .. bytes.Points.Select(point => point.Point)],
            bytes.Methods.Select(method => (IReadOnlyList<string>)[Emphasised(method), .. bytes.Of(method).Select((measured, index) => Emphasised(method, SizeText.OfAmount(Beside(measured, bytes, ReportPlan.MemoryPoints[index]))))]));
        _page.Table(
            ["way", .. doubles.Points.Select(point => $"{point.Point} doubles")],
            doubles.Methods.Select(method => (IReadOnlyList<string>)[Emphasised(method), .. doubles.Of(method).Select((measured, index) => Emphasised(method, SizeText.OfAmount(Beside(measured, doubles, ReportPlan.MemoryDoubles[index]))))]));
        _page.Paragraph("Without an array: the same content copied from its stream into a new file, which is closed, and its length checked.");
        Table(_results["memory-file"]);

        static double Mean(SectionResult result, string method, string other)
            => GeometricMean(result.Of(method).Zip(result.Of(other), (own, baseline) => own.Ratio.Median / baseline.Ratio.Median));

        // An array's header takes three words, and its end is rounded up to one.
        static double Beside(Measured measured, SectionResult result, (int Size, int Writes) point)
            => Math.Max(0, (measured.AllocatedBytes / result.Section.Operations) - ((((long)point.Size * point.Writes) + (4 * sizeof(long)) - 1) / sizeof(long) * sizeof(long)));
    }

    private void Waits()
    {
        if (_waits is null)
        {
            return;
        }

        _page.Heading(2, "What waits");
        _page.Paragraph("Cold reads of 4 KiB at random places, and flushes of 512 B that are each on the device before the next one, many at once; beside them an unrelated work item, queued to the thread pool a millisecond after the one before was done. The measure is as many threads of one's own that block. This library makes such calls on threads of its own, and the thread pool stays free.");
        foreach (bool isReads in (bool[])[true, false])
        {
            (bool IsReads, int AtOnce, IReadOnlyList<WaitingFigures> Ways)[] points = [.. _waits.Points.Where(point => point.IsReads == isReads)];
            string what = isReads ? "Cold reads of 4 KiB" : "Durable flushes of 512 B";
            _page.Picture(
                isReads ? "waits-reads.svg" : "waits-flushes.svg",
                BarChart.Draw(
                    $"{what}: operations a second",
                    [.. points.Select(point => new BarGroup($"{point.AtOnce} at once", [.. point.Ways.Select(way => (way.Way, way.OperationsPerSecond.Median, $"{way.OperationsPerSecond.Median:N0}/s, work item {Number(way.DelayNinetyNinth)} ms"))]))]),
                $"Bars: {what} a second by each way, with the delay of an unrelated work item (99 of 100 within)");
            _page.Paragraph($"**{what}.** An operation's time is its median and what 99 of 100 take at most; so is the delay of the unrelated work item, with the longest.");
            _page.Table(
                ["at once", "way", "operations/s", "against threads of one's own", "one operation", "CPU of one", "delay of a work item", "pool threads"],
                points.SelectMany(point => point.Ways.Select(way => (IReadOnlyList<string>)
                [
                    point.AtOnce.ToString(CultureInfo.InvariantCulture),
                    Emphasised(way.Way),
                    way.OperationsPerSecond.Median.ToString("N0", CultureInfo.InvariantCulture),
                    Emphasised(way.Way, Number(way.Ratio.Median)) + $" ({Number(way.Ratio.LowerQuartile)}–{Number(way.Ratio.UpperQuartile)})",
                    $"{Number(way.Median)}, {Number(way.NinetyNinth)} ms",
                    $"{Number(way.CpuMicroseconds)} µs",
                    $"{Number(way.DelayMedian)}, {Number(way.DelayNinetyNinth)}, {Number(way.DelayLongest)} ms",
                    way.PoolThreads.ToString(CultureInfo.InvariantCulture),
                ])));
        }

        WaitingFigures reads = At64(isReads: true);
        WaitingFigures flushes = At64(isReads: false);
        double wakeUps = _waits.Fifos[^1].Microseconds.Median / _waits.Fifos[0].Microseconds.Median;
        _page.Paragraph("What it is held to, with 64 at once:");
        _page.Table(
            ["", "is to be", "this run", ""],
            [
                Bar("durable flushes against threads of one's own", "at least 0.85", flushes.Ratio.Median, flushes.Ratio.Median >= 0.85),
                Bar("cold reads against threads of one's own", "at least 0.9", reads.Ratio.Median, reads.Ratio.Median >= 0.9),
                Bar("unrelated work item, median, reads", "at most 0.2 ms", reads.DelayMedian, reads.DelayMedian <= 0.2),
                Bar("unrelated work item, 99 of 100, reads", "at most 2 ms", reads.DelayNinetyNinth, reads.DelayNinetyNinth <= 2),
                Bar("unrelated work item, median, flushes", "at most 0.2 ms", flushes.DelayMedian, flushes.DelayMedian <= 0.2),
                Bar("unrelated work item, 99 of 100, flushes", "at most 2 ms", flushes.DelayNinetyNinth, flushes.DelayNinetyNinth <= 2),
                Bar($"waking one of {_waits.Fifos[^1].Count:N0} idle FIFOs against one of {_waits.Fifos[0].Count}: {Number(_waits.Fifos[^1].Microseconds.Median)} and {Number(_waits.Fifos[0].Microseconds.Median)} µs", "at most 1.5", wakeUps, wakeUps <= 1.5),
            ],
            isText: true);

        WaitingFigures At64(bool isReads) => _waits.Points.Single(point => point.IsReads == isReads && point.AtOnce == 64).Ways[^1];

        IReadOnlyList<string> Bar(string what, string bar, double figure, bool isMet) => [what, bar, Number(figure), isMet ? "met" : "**missed**"];
    }

    private void Method()
    {
        _page.Heading(2, "How it was measured");
        _page.Table(
            ["", "this run"],
            [
                ["machine", _surroundings.Machine],
                ["system", _surroundings.System],
                ["file system", _surroundings.FileSystem],
                [".NET", _surroundings.Runtime],
                ["commit", $"`{_surroundings.Commit}`"],
                ["when", string.Create(CultureInfo.InvariantCulture, $"{_surroundings.Date:yyyy-MM-dd HH:mm} UTC, {_duration.TotalMinutes:0.0} minutes")],
            ],
            isText: true);
        _page.List(
        [
            "All ways of one point run in one process, round by round, each round beginning with another of them. A ratio compares times of the same round only; what is given is the median of the rounds and, in parentheses, its quartiles. So what changes on the machine meanwhile changes both sides.",
            "Every run checks its own answer: the bytes or the sum that the file holds, the number that the parser has to find, the length of what was written. A wrong one ends the report.",
            "Allocation is that of the whole process, thread-pool threads included. CPU time, best and worst rounds and the number of rounds are in [figures.csv](figures.csv).",
            "Files are in the page cache unless a title says otherwise. A cold run begins with `posix_fadvise(POSIX_FADV_DONTNEED)`.",
            "One machine is one machine. Ratios hold better than times, and neither says anything about another disk.",
        ]);
        _page.Paragraph("Repeat it, which replaces these files:");
        _page.Code("dotnet run -c Release --project benchmarks/Pipelines.File.Benchmarks -- report");
    }

    // A grid of 2019, with its figures of then behind it; two of its adapters differ by nothing that can be seen.
    private void Lines((int MiB, bool IsAsynchronous) grid)
        => Lines(_results[ReportPlan.ReadKey(grid.MiB, grid.IsAsynchronous)], ReportPlan.BufferSizes, PublishedRatio.ReadGrid2019
            .Where(ratio => ratio.MiB == grid.MiB && ratio.IsAsynchronous == grid.IsAsynchronous)
            .GroupBy(ratio => ratio.Method)
            .Where(group => group.Key != "PipelineAdapter3")
            .Select(group => new LineSeries(
                group.Key switch { "PipelineNative" => "2019: native reader", "PipelineAdapter" => "2019: FileStream to Pipe", "PipelineAdapter2" => "2019: GetReader(stream)", _ => $"2019: {group.Key}" },
                [.. group.OrderBy(ratio => ratio.BufferSize).Select(ratio => ((double)ratio.BufferSize, Spread.Of([ratio.Ratio])))],
                IsFaint: true)));

    private void Lines(SectionResult result, IReadOnlyList<int> sizes, IEnumerable<LineSeries> behind)
    {
        IEnumerable<LineSeries> lines = result.Methods.Skip(1).Select(method => new LineSeries(method, [.. result.Of(method).Select((measured, index) => ((double)sizes[index], measured.Ratio))]));
        _page.Picture(
            $"{result.Section.Key}.svg",
            LineChart.Draw($"{result.Section.Title}: time against {result.Baseline}", result.Section.Axis, [.. sizes.Select(size => ((double)size, SizeText.Of(size)))], [.. behind, .. lines]),
            $"Lines: {result.Section.Title}, time against {result.Baseline} by {result.Section.Axis}");
    }

    private void Table(SectionResult result)
    {
        int operations = result.Section.Operations;
        bool isWide = result.Points.Count > 1;
        _page.Paragraph($"**{result.Section.Title}.** The first row is a time, the others are ratios to it{(isWide ? $"; columns: {result.Section.Axis}" : string.Empty)}.");
        _page.Table(
            ["way", .. isWide ? result.Points.Select(point => point.Point) : ["against the baseline", "time"], "allocated"],
            result.Methods.Select((method, index) =>
            {
                IReadOnlyList<Measured> measured = result.Of(method);
                IEnumerable<string> figures = index == 0
                    ? measured.Select(point => isWide ? Time(point.Microseconds.Median / operations) : "1")
                    : measured.Select(point => $"{Emphasised(method, Number(point.Ratio.Median))} ({Number(point.Ratio.LowerQuartile)}–{Number(point.Ratio.UpperQuartile)})");
                return (IReadOnlyList<string>)[Emphasised(method), .. figures, .. isWide ? (IEnumerable<string>)[] : [Time(measured[0].Microseconds.Median / operations)], Amount(measured.Select(point => point.AllocatedBytes / operations))];
            }));
    }

    private double Mean(string method, bool isAsynchronous)
        => GeometricMean(ReportPlan.ReadGrids.Where(grid => grid.IsAsynchronous == isAsynchronous).SelectMany(grid => _results[ReportPlan.ReadKey(grid.MiB, isAsynchronous)].Of(method)).Select(measured => measured.Ratio.Median));

    private static double Mean2019(string method, bool isAsynchronous)
        => GeometricMean(PublishedRatio.ReadGrid2019.Where(ratio => ratio.Method == method && ratio.IsAsynchronous == isAsynchronous).Select(ratio => ratio.Ratio));

    private static double GeometricMean(IEnumerable<double> ratios) => Math.Exp(ratios.Average(Math.Log));

    private static bool IsLimit(string method) => method is "pread(2)" or "pwrite(2)" or "already in memory";

    private static string Emphasised(string method, string? text = null) => Palette.IsOwn(method) ? $"**{text ?? method}**" : text ?? method;

    private static string Number(double value) => value.ToString(value < 10 ? "0.00" : "0.0", CultureInfo.InvariantCulture);

    private static string Time(double microseconds)
        => microseconds < 1 ? string.Create(CultureInfo.InvariantCulture, $"{microseconds * 1000:0} ns") : microseconds < 10 ? string.Create(CultureInfo.InvariantCulture, $"{microseconds:0.0} µs") : microseconds < 1000 ? string.Create(CultureInfo.InvariantCulture, $"{microseconds:0} µs") : string.Create(CultureInfo.InvariantCulture, $"{microseconds / 1000:0.0} ms");

    private static string Amount(IEnumerable<double> bytes)
    {
        (string least, string most) = (SizeText.OfAmount(bytes.Min()), SizeText.OfAmount(bytes.Max()));
        return least == most ? least : $"{least} – {most}";
    }
}
