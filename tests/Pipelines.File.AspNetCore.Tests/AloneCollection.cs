using System.Diagnostics.CodeAnalysis;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>Tests that watch what belongs to the whole process: its counters, its memory, its handles.</summary>
[CollectionDefinition(nameof(AloneCollection), DisableParallelization = true)]
[SuppressMessage("Naming", "CA1711:Identifiers should not have incorrect suffix", Justification = "It is what xunit calls one.")]
public sealed class AloneCollection;
