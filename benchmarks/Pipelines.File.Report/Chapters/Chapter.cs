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

    /// <summary>Measures. Called once, and before what follows; nothing else is measured meanwhile.</summary>
    internal abstract Task MeasureAsync(Allowance allowance);

    /// <summary>Its lines of the first page.</summary>
    internal virtual IEnumerable<Headline> Headlines => [];

    /// <summary>The grids whose losses are listed and which go to figures.csv.</summary>
    internal virtual IReadOnlyList<GridResult> Results => [];

    /// <summary>Further CSV files: name and content.</summary>
    internal virtual IEnumerable<(string FileName, string Text)> DataFiles => [];

    /// <summary>Writes what follows its heading.</summary>
    internal abstract void Write(Page page);
}

/// <summary>A chapter of grids that are measured one after the other.</summary>
/// <param name="grids">Each gets its share of the chapter's time by its weight.</param>
internal abstract class GridChapter(IReadOnlyList<Grid> grids) : ReportChapter
{
    private readonly List<GridResult> _results = [];

    internal override double Weight => grids.Sum(grid => grid.Weight);

    internal override IReadOnlyList<GridResult> Results => _results;

    internal override async Task MeasureAsync(Allowance allowance)
    {
        double weight = grids.Sum(grid => grid.Weight);
        double done = 0;
        foreach (Grid grid in grids)
        {
            double share = grid.Weight / weight;
            double before = done;
            _results.Add(
                await grid.MeasureAsync(new Allowance(allowance.Time * share, part => allowance.OnShare(before + (part * share)))));
            done += share;
        }
    }

    private protected GridResult Find(string key) => _results.Single(result => result.Grid.Key == key);
}
