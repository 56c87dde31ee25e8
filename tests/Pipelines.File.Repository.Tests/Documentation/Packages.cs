using System.Reflection;
using Pipelines.File;
using Pipelines.File.AspNetCore;
using Pipelines.File.Testing;

namespace FilePipelines.Repository.Tests;

/// <summary>The libraries that are packages, by a type of each.</summary>
internal static class Packages
{
    internal static IReadOnlyList<Assembly> All { get; } =
    [
        typeof(FilePipeReader).Assembly, typeof(FilePipelinesOptions).Assembly, typeof(PooledMemoryStream).Assembly,
        typeof(Journal).Assembly, typeof(LogFollower).Assembly, typeof(TestPipeReader).Assembly,
    ];
}
