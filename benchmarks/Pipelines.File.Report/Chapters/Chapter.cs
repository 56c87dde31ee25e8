namespace FilePipelines.Benchmarks.Reporting;

/// <summary>
/// A chapter of the report: it measures, contributes its lines to the table of the first page, and writes itself. One that fails is named
/// on the first page and left out; the others go on. Program.cs has the list.
/// </summary>
internal abstract class ReportChapter
{
    internal abstract string Title { get; }

    /// <summary>Its share of the report's time, and about the seconds that it takes where its measurement has a fixed size.</summary>
    internal abstract double Weight { get; }

    /// <summary>Whether it can be measured on this system.</summary>
    internal virtual bool IsSupported => true;

    /// <summary>Measures, within about so much time. Called once, and before what follows; nothing else is measured meanwhile.</summary>
    internal abstract Task MeasureAsync(TimeSpan time);

    /// <summary>Its lines of the first page.</summary>
    internal virtual IEnumerable<Headline> Headlines => [];

    /// <summary>The grids that go to figures.csv, and whose losses are listed.</summary>
    internal virtual IReadOnlyList<GridResult> Results => [];

    /// <summary>What else has losses to be listed.</summary>
    internal virtual IEnumerable<GridResult> Others => [];

    /// <summary>Further CSV files: name and content.</summary>
    internal virtual IEnumerable<(string FileName, string Text)> DataFiles => [];

    /// <summary>Writes what follows its heading.</summary>
    internal abstract void Write(Page page);
}

/// <summary>A chapter of grids that are measured one after the other.</summary>
/// <param name="title">Its heading.</param>
/// <param name="grids">Each gets its share of the chapter's time by its weight.</param>
internal abstract class GridChapter(string title, IReadOnlyList<Grid> grids) : ReportChapter
{
    private readonly List<GridResult> _results = [];

    internal override string Title => title;
    internal override double Weight => grids.Sum(grid => grid.Weight);
    internal override IReadOnlyList<GridResult> Results => _results;

    internal override async Task MeasureAsync(TimeSpan time)
    {
        foreach (Grid grid in grids)
        {
            _results.Add(await grid.MeasureAsync(time * (grid.Weight / grids.Sum(one => one.Weight))));
        }
    }

    internal override void Write(Page page)
    {
        foreach (GridResult result in Results)
        {
            page.Grid(result);
        }
    }

    private protected GridResult Find(string key) => _results.Single(result => result.Grid.Key == key);
}
