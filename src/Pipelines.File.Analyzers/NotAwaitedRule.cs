using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;
using Microsoft.CodeAnalysis.Diagnostics;

namespace Pipelines.File.Analyzers;

/// <summary>Finds FlushAsync, WriteAsync and CompleteAsync of a PipeWriter whose result is dropped.</summary>
internal static class NotAwaitedRule
{
    internal static void Analyze(SyntaxNodeAnalysisContext context)
    {
        // writer.FlushAsync(), writer?.FlushAsync(), writer.FlushAsync().ConfigureAwait(false)
        ExpressionSyntax dropped = ((ExpressionStatementSyntax)context.Node).Expression;
        ExpressionSyntax call = KnownTypes.Unwrap(
            dropped is ConditionalAccessExpressionSyntax conditional ? conditional.WhenNotNull : dropped);
        if (dropped is not AwaitExpressionSyntax
            && call is InvocationExpressionSyntax { Expression: var called }
            && ((called as MemberAccessExpressionSyntax)?.Name ?? (called as MemberBindingExpressionSyntax)?.Name) is { } name
            && name.Identifier.Text is "FlushAsync" or "WriteAsync" or "CompleteAsync"
            && context.SemanticModel.GetSymbolInfo(call, context.CancellationToken).Symbol is IMethodSymbol method
            && method.ContainingType.IsOrDerivesFrom("System.IO.Pipelines", "PipeWriter"))
        {
            context.ReportDiagnostic(Diagnostic.Create(Rules.NotAwaited, dropped.GetLocation(), name.Identifier.Text));
        }
    }
}
