using Microsoft.CodeAnalysis;

namespace Pipelines.File.Analyzers;

/// <summary>What is reported; docs/analyzers.md has a paragraph for each.</summary>
public static class Rules
{
    private const string Category = "Reliability";

    /// <summary>A writer with Replace is disposed, and nothing has completed it.</summary>
    public static readonly DiagnosticDescriptor ReplaceNotCompleted = new(
        "PF0001",
        "A writer with Replace is disposed without CompleteAsync",
        "'{0}' has Replace, and is disposed without CompleteAsync: the file does not appear",
        Category,
        DiagnosticSeverity.Warning,
        isEnabledByDefault: true,
        "Disposing a writer with Replace gives up what was written, so that an exception on the way leaves the old file. Where all has gone well CompleteAsync makes the new one appear.");

    /// <summary>A line of ReadLinesAsync is kept.</summary>
    public static readonly DiagnosticDescriptor LineStored = new(
        "PF0002",
        "A line of ReadLinesAsync is stored",
        "A line of ReadLinesAsync is valid until the next step of the loop: store a copy",
        Category,
        DiagnosticSeverity.Warning,
        isEnabledByDefault: true,
        "The line refers to the reader's buffer, which is used again. Store line.ToArray() or Encoding.UTF8.GetString(line), or read with ReadTextLinesAsync.");

    /// <summary>A buffer is used behind AdvanceTo.</summary>
    public static readonly DiagnosticDescriptor BufferUsedBehindAdvance = new(
        "PF0003",
        "A reader's buffer is used behind AdvanceTo",
        "'{0}' is used behind AdvanceTo, which has given its memory back",
        Category,
        DiagnosticSeverity.Warning,
        isEnabledByDefault: true,
        "After AdvanceTo the memory of the buffer may hold anything. Use the buffer, its length included, before.");

    /// <summary>What a call of a writer returns is dropped.</summary>
    public static readonly DiagnosticDescriptor NotAwaited = new(
        "PF0004",
        "A flush, write or completion of a PipeWriter is not awaited",
        "'{0}' is not awaited: its error is lost, and the next call of the writer may come too early",
        Category,
        DiagnosticSeverity.Warning,
        isEnabledByDefault: true,
        "FlushAsync, WriteAsync and CompleteAsync of a PipeWriter are one call at a time, and tell of a write that failed only to who awaits them.");
}
