namespace FilePipelinesBenchmarks.Reporting;

/// <summary>
/// A chapter of the report: it measures, contributes its lines to the table of the first page, and writes itself. One that fails is named
/// on the first page and left out; the others go on. <see cref="ReportPlan"/> has the list.
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
    internal virtual IReadOnlyList<SectionResult> Grids => [];

    /// <summary>Further CSV files: name and content.</summary>
    internal virtual IEnumerable<(string FileName, string Text)> DataFiles => [];

    /// <summary>Writes what follows its heading.</summary>
    internal abstract void Write(Page page);
}
