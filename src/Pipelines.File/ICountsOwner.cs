namespace Pipelines.File;

/// <summary>Whoever has <see cref="UnrecordedCounts"/>.</summary>
internal interface ICountsOwner
{
    /// <summary>Tells the listeners of the meter what has been counted. Runs a caller's code: on a thread of a caller's, without a lock.</summary>
    void RecordCounts();
}
