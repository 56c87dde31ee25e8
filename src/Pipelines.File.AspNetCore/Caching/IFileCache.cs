namespace Pipelines.File.AspNetCore;

/// <summary>A cache whose looks through its folder end with the application.</summary>
internal interface IFileCache : IDisposable
{
    /// <summary>Ends the look that is under way, and the later ones. The cache itself goes on.</summary>
    Task StopAsync();
}
