using System.Reflection;
using Microsoft.CodeAnalysis;

namespace Pipelines.File.Analyzers;

/// <summary>The diagnostics; docs/analyzers.md has a paragraph for each.</summary>
public static class Rules
{
    // The SDK writes it, from the clone's remote. Initialized before the rules, which it is part of.
    private static readonly string? s_repository = typeof(Rules).Assembly.GetCustomAttributes<AssemblyMetadataAttribute>()
        .FirstOrDefault(metadata => metadata.Key == "RepositoryUrl")?.Value;

    /// <summary>A writer with Replace is disposed without being completed.</summary>
    public static readonly DiagnosticDescriptor ReplaceNotCompleted = Rule(
        "PF0001",
        "A writer with Replace is disposed without CompleteAsync",
        "'{0}' has Replace and is disposed without CompleteAsync, so the file does not appear",
        "Disposing a writer with Replace drops what was written, so that the old file stays after an exception. Call CompleteAsync at the "
        + "end to make the new file appear.");

    /// <summary>What a loop lends, as a line of ReadLineSequencesAsync or a batch, is stored beyond its step.</summary>
    public static readonly DiagnosticDescriptor BorrowedStored = Rule(
        "PF0002",
        "A line or a batch is stored, which is valid for one step of its loop",
        "'{0}' keeps what is valid until the next step of the loop only: store a copy",
        "A line of ReadLineSequencesAsync, a batch and a followed line refer to the reader's buffer, which the next step of the loop uses "
        + "again. Store Copy() of a batch or of a followed line, and line.ToArray() of a sequence, or read strings with ReadLinesAsync.");

    /// <summary>A buffer is used after AdvanceTo.</summary>
    public static readonly DiagnosticDescriptor BufferUsedBehindAdvance = Rule(
        "PF0003",
        "A reader's buffer is used after AdvanceTo",
        "'{0}' is used after AdvanceTo, which has given its memory back",
        "After AdvanceTo the memory of the buffer may hold other bytes. Use the buffer and its length before AdvanceTo.");

    /// <summary>The task of a writer's FlushAsync, WriteAsync or CompleteAsync is not awaited.</summary>
    public static readonly DiagnosticDescriptor NotAwaited = Rule(
        "PF0004",
        "A flush, write or completion of a PipeWriter is not awaited",
        "'{0}' is not awaited: its error is lost, and the next call of the writer may come too early",
        "A PipeWriter allows one call of FlushAsync, WriteAsync or CompleteAsync at a time, and reports a failed write only to a caller "
        + "that awaits the call.");

    private static DiagnosticDescriptor Rule(string id, string title, string message, string description)
        => new(id, title, message, "Reliability", DiagnosticSeverity.Warning, isEnabledByDefault: true, description,
            HelpLinkOf(s_repository, id));

    /// <summary>The paragraph of the rule, if the assembly was built in a clone that has a remote.</summary>
    internal static string? HelpLinkOf(string? repository, string id)
        => repository?.StartsWith("https://", StringComparison.Ordinal) != true ? null
            : $"{(repository.EndsWith(".git", StringComparison.Ordinal) ? repository.Substring(0, repository.Length - 4) : repository)}"
                + $"/blob/main/docs/analyzers.md#{id.ToLowerInvariant()}";
}
