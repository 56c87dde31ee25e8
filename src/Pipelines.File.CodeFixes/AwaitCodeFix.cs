using System.Collections.Immutable;
using System.Composition;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CodeActions;
using Microsoft.CodeAnalysis.CodeFixes;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;
using Pipelines.File.Analyzers;

namespace Pipelines.File.CodeFixes;

/// <summary>PF0004: awaits the call, where the method is async.</summary>
[ExportCodeFixProvider(LanguageNames.CSharp)]
[Shared]
public sealed class AwaitCodeFix : CodeFixProvider
{
    /// <inheritdoc/>
    public override ImmutableArray<string> FixableDiagnosticIds { get; } = ImmutableArray.Create(Rules.NotAwaited.Id);

    /// <inheritdoc/>
    public override FixAllProvider GetFixAllProvider() => WellKnownFixAllProviders.BatchFixer;

    /// <inheritdoc/>
    public override async Task RegisterCodeFixesAsync(CodeFixContext context)
    {
        SyntaxNode? root = await context.Document.GetSyntaxRootAsync(context.CancellationToken).ConfigureAwait(false);
        if (root?.FindNode(context.Span, getInnermostNodeForTie: true) is not InvocationExpressionSyntax call)
        {
            return;
        }

        // Top-level statements may await.
        if (AsyncCode.IsAsyncAround(call) != false)
        {
            context.RegisterCodeFix(
                CodeAction.Create(
                    "Await the call",
                    _ => Task.FromResult(context.Document.WithSyntaxRoot(root.ReplaceNode(
                        call, SyntaxFactory.AwaitExpression(call.WithoutTrivia()).NormalizeWhitespace().WithTriviaFrom(call)))),
                    equivalenceKey: Rules.NotAwaited.Id),
                context.Diagnostics);
        }
    }
}
