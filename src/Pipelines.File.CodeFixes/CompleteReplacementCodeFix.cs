using System.Collections.Immutable;
using System.Composition;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CodeActions;
using Microsoft.CodeAnalysis.CodeFixes;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;
using Microsoft.CodeAnalysis.Formatting;
using Pipelines.File.Analyzers;

namespace Pipelines.File.CodeFixes;

/// <summary>PF0001: completes the writer as the last thing that is done while it is not disposed.</summary>
[ExportCodeFixProvider(LanguageNames.CSharp)]
[Shared]
public sealed class CompleteReplacementCodeFix : CodeFixProvider
{
    /// <inheritdoc/>
    public override ImmutableArray<string> FixableDiagnosticIds { get; } = ImmutableArray.Create(Rules.ReplaceNotCompleted.Id);

    /// <inheritdoc/>
    public override FixAllProvider GetFixAllProvider() => WellKnownFixAllProviders.BatchFixer;

    /// <inheritdoc/>
    public override async Task RegisterCodeFixesAsync(CodeFixContext context)
    {
        SyntaxNode? root = await context.Document.GetSyntaxRootAsync(context.CancellationToken).ConfigureAwait(false);
        if (root?.FindNode(context.Span).FirstAncestorOrSelf<VariableDeclaratorSyntax>() is not { } declarator)
        {
            return;
        }

        // The block at whose end the writer is disposed. Top-level statements have none; there, and with explicit calls of Dispose, the
        // place is the programmer's to choose.
        BlockSyntax? block = declarator.Parent?.Parent switch
        {
            LocalDeclarationStatementSyntax { UsingKeyword.RawKind: not 0, Parent: BlockSyntax around } => around,
            UsingStatementSyntax { Statement: BlockSyntax body } => body,
            _ => null,
        };
        if (block is null || block.Statements.LastOrDefault() is ReturnStatementSyntax or ThrowStatementSyntax)
        {
            return;
        }

        context.RegisterCodeFix(
            CodeAction.Create(
                "Complete the writer",
                _ =>
                {
                    string name = declarator.Identifier.Text;
                    StatementSyntax complete = SyntaxFactory.ParseStatement(
                        AsyncCode.IsAsyncAround(block) == true ? $"await {name}.CompleteAsync();" : $"{name}.Complete();")
                        .WithTrailingTrivia(SyntaxFactory.ElasticLineFeed)
                        .WithAdditionalAnnotations(Formatter.Annotation);
                    return Task.FromResult(context.Document.WithSyntaxRoot(root.ReplaceNode(block, block.AddStatements(complete))));
                },
                equivalenceKey: Rules.ReplaceNotCompleted.Id),
            context.Diagnostics);
    }
}
