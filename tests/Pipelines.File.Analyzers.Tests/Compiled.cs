using System.Collections.Immutable;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CodeActions;
using Microsoft.CodeAnalysis.CodeFixes;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.Diagnostics;
using Microsoft.CodeAnalysis.Text;
using Pipelines.File.Analyzers;

namespace FilePipelines.Analyzers.Tests;

/// <summary>Source text, compiled as it would be for .NET 10 with the library, and what the analyzers say of it.</summary>
internal static class Compiled
{
    private const string Usings = """
        global using System;
        global using System.Buffers;
        global using System.Collections.Generic;
        global using System.IO;
        global using System.IO.Pipelines;
        global using System.Linq;
        global using System.Threading;
        global using System.Threading.Tasks;
        global using Pipelines.File;
        """;

    private static readonly ImmutableArray<MetadataReference> s_references =
    [
        .. ((string)AppContext.GetData("TRUSTED_PLATFORM_ASSEMBLIES")!).Split(Path.PathSeparator)
            .Select(path => MetadataReference.CreateFromFile(path)),
    ];

    private static readonly ImmutableArray<DiagnosticAnalyzer> s_analyzers = [new UsageAnalyzer()];

    /// <summary>Statements, in an async method, that have to compile. Returns each diagnostic as "id text".</summary>
    public static async Task<string[]> DiagnoseAsync(string statements)
    {
        string source = Method(statements);
        (Document document, ImmutableArray<Diagnostic> found) = await AnalyzeAsync(source);
        Compilation compilation = (await document.Project.GetCompilationAsync())!;
        Assert.Empty(compilation.GetDiagnostics().Where(one => one.Severity == DiagnosticSeverity.Error));
        return [.. found.OrderBy(one => one.Location.SourceSpan.Start)
            .Select(one => $"{one.Id} {source[one.Location.SourceSpan.Start..one.Location.SourceSpan.End]}")];
    }

    /// <summary>What the statements are after the first fix that is offered; <see langword="null"/> where none is.</summary>
    public static async Task<string?> FixAsync(string statements, CodeFixProvider provider)
    {
        (Document document, ImmutableArray<Diagnostic> found) = await AnalyzeAsync(Method(statements));
        List<CodeAction> actions = [];
        Diagnostic diagnostic = found.Single(one => provider.FixableDiagnosticIds.Contains(one.Id));
        await provider.RegisterCodeFixesAsync(
            new CodeFixContext(document, diagnostic, (action, _) => actions.Add(action), CancellationToken.None));
        if (actions.Count == 0)
        {
            return null;
        }

        ApplyChangesOperation change =
            (await actions[0].GetOperationsAsync(CancellationToken.None)).OfType<ApplyChangesOperation>().Single();
        Document changed = change.ChangedSolution.GetDocument(document.Id)!;
        Assert.Empty(
            (await changed.Project.GetCompilationAsync())!.GetDiagnostics().Where(one => one.Severity == DiagnosticSeverity.Error));
        SourceText text = await changed.GetTextAsync();
        return text.ToString();
    }

    /// <summary>The diagnostics of files that need not compile by themselves, each as "id file".</summary>
    public static async Task<string[]> DiagnoseFilesAsync(IEnumerable<string> paths)
    {
        CSharpCompilation compilation = CSharpCompilation.Create(
            "Files",
            [.. paths.Append("").Select(path => CSharpSyntaxTree.ParseText(
                path.Length == 0 ? Usings : File.ReadAllText(path), new CSharpParseOptions(LanguageVersion.Preview), path))],
            s_references,
            new CSharpCompilationOptions(
                OutputKind.DynamicallyLinkedLibrary, nullableContextOptions: NullableContextOptions.Enable, allowUnsafe: true));
        ImmutableArray<Diagnostic> found = await compilation.WithAnalyzers(s_analyzers).GetAnalyzerDiagnosticsAsync(CancellationToken.None);
        return [.. found.Where(one => !one.IsSuppressed).Select(one => $"{one.Id} {Path.GetFileName(one.Location.SourceTree!.FilePath)} "
            + $"{one.Location.GetLineSpan().StartLinePosition.Line + 1}").Order()];
    }

    private static string Method(string statements) => $$"""
        internal sealed class Entry
        {
            internal ReadOnlySequence<byte> Line { get; set; }

            internal static OperationStatus TryTake(ReadOnlySpan<byte> bytes, out int consumed, out int record)
            {
                consumed = record = 1;
                return bytes.IsEmpty ? OperationStatus.NeedMoreData : OperationStatus.Done;
            }
        }

        internal readonly struct EntryParser : IRecordParser<int>
        {
            public OperationStatus Parse(ReadOnlySpan<byte> bytes, out int consumed, out int record)
                => Entry.TryTake(bytes, out consumed, out record);
        }

        internal sealed class Program
        {
            internal FilePipeWriter? Field;

            internal static async Task RunAsync(PipeReader reader, PipeWriter other, string path)
            {
                await Task.Yield();
        {{string.Join('\n', statements.Split('\n').Select(line => line.Length == 0 ? line : "        " + line))}}
            }

            internal static async Task OwnAsync(PipeWriter writer) => await writer.CompleteAsync();
        }
        """;

    private static async Task<(Document Document, ImmutableArray<Diagnostic> Found)> AnalyzeAsync(string source)
    {
        using AdhocWorkspace workspace = new();
        ProjectId id = ProjectId.CreateNewId();
        Solution solution = workspace.CurrentSolution
            .AddProject(ProjectInfo.Create(
                id,
                VersionStamp.Default,
                "Test",
                "Test",
                LanguageNames.CSharp,
                compilationOptions: new CSharpCompilationOptions(
                    OutputKind.DynamicallyLinkedLibrary, nullableContextOptions: NullableContextOptions.Enable),
                parseOptions: new CSharpParseOptions(LanguageVersion.Preview),
                metadataReferences: s_references))
            .AddDocument(DocumentId.CreateNewId(id), "Usings.cs", Usings)
            .AddDocument(DocumentId.CreateNewId(id), "Program.cs", source);
        Document document = solution.GetProject(id)!.Documents.Single(one => one.Name == "Program.cs");
        Compilation compilation = (await document.Project.GetCompilationAsync())!;
        Assert.Contains(compilation.References, one => one.Display!.EndsWith("Pipelines.File.dll", StringComparison.Ordinal));
        return (document, await compilation.WithAnalyzers(s_analyzers).GetAnalyzerDiagnosticsAsync(CancellationToken.None));
    }
}
