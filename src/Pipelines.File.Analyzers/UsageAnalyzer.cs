using System.Collections.Immutable;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.Diagnostics;

namespace Pipelines.File.Analyzers;

/// <summary>Registers every rule for the syntax that it examines.</summary>
[DiagnosticAnalyzer(LanguageNames.CSharp)]
public sealed class UsageAnalyzer : DiagnosticAnalyzer
{
    /// <inheritdoc/>
    public override ImmutableArray<DiagnosticDescriptor> SupportedDiagnostics { get; }
        = ImmutableArray.Create(Rules.ReplaceNotCompleted, Rules.BorrowedStored, Rules.BufferUsedBehindAdvance, Rules.NotAwaited);

    /// <inheritdoc/>
    public override void Initialize(AnalysisContext context)
    {
        context.ConfigureGeneratedCodeAnalysis(GeneratedCodeAnalysisFlags.None);
        context.EnableConcurrentExecution();
        context.RegisterSyntaxNodeAction(ReplaceNotCompletedRule.Analyze, SyntaxKind.VariableDeclarator);
        context.RegisterSyntaxNodeAction(BorrowedStoredRule.AnalyzeCall, SyntaxKind.InvocationExpression);
        context.RegisterSyntaxNodeAction(BorrowedStoredRule.AnalyzeLoop, SyntaxKind.ForEachStatement);
        context.RegisterSyntaxNodeAction(BufferUsedBehindAdvanceRule.Analyze, SyntaxKind.InvocationExpression);
        context.RegisterSyntaxNodeAction(NotAwaitedRule.Analyze, SyntaxKind.ExpressionStatement);
    }
}
