using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;
using Microsoft.CodeAnalysis.Diagnostics;

namespace Pipelines.File.Analyzers;

/// <summary>
/// Finds uses of a buffer after an AdvanceTo that was given a position of it: in later statements of the same block, until the buffer is
/// assigned again. It does not look at other paths.
/// </summary>
internal static class BufferUsedBehindAdvanceRule
{
    internal static void Analyze(SyntaxNodeAnalysisContext context)
    {
        InvocationExpressionSyntax call = (InvocationExpressionSyntax)context.Node;
        SemanticModel model = context.SemanticModel;
        if (call.Expression is not MemberAccessExpressionSyntax { Name.Identifier.Text: "AdvanceTo" }
            || call.Parent is not ExpressionStatementSyntax statement
            || model.GetSymbolInfo(call, context.CancellationToken).Symbol is not IMethodSymbol method
            || !method.ContainingType.IsOrDerivesFrom("System.IO.Pipelines", "PipeReader"))
        {
            return;
        }

        HashSet<ISymbol> buffers = new(SymbolEqualityComparer.Default);
        foreach (IdentifierNameSyntax name in call.ArgumentList.DescendantNodes().OfType<IdentifierNameSyntax>())
        {
            // A sequence of which the arguments use only the length may be another one than the buffer.
            if (name.Parent is not MemberAccessExpressionSyntax { Name.Identifier.Text: "Length" }
                && BufferOf(name, model, context.CancellationToken) is { } buffer)
            {
                buffers.Add(buffer);
            }
        }

        foreach (SyntaxNode node in StatementsAfter(statement).SelectMany(
            one => one.DescendantNodesAndSelf(child => child is not (AnonymousFunctionExpressionSyntax or LocalFunctionStatementSyntax))))
        {
            switch (node)
            {
                case AssignmentExpressionSyntax { Left: IdentifierNameSyntax assigned }
                    when model.GetSymbolInfo(assigned, context.CancellationToken).Symbol is { } symbol:
                    buffers.Remove(symbol);
                    break;
                case AssignmentExpressionSyntax { Left: TupleExpressionSyntax tuple }:
                    buffers.ExceptWith(tuple.Arguments
                        .Select(one => model.GetSymbolInfo(one.Expression, context.CancellationToken).Symbol).OfType<ISymbol>());
                    break;
                case ArgumentSyntax { RefKindKeyword.RawKind: (int)SyntaxKind.OutKeyword, Expression: IdentifierNameSyntax given }
                    when model.GetSymbolInfo(given, context.CancellationToken).Symbol is { } symbol:
                    buffers.Remove(symbol);
                    break;
                case IdentifierNameSyntax name
                    when !IsOfNameOf(name) && BufferOf(name, model, context.CancellationToken) is { } buffer && buffers.Contains(buffer):
                    context.ReportDiagnostic(Diagnostic.Create(Rules.BufferUsedBehindAdvance, name.GetLocation(),
                        name.Parent is MemberAccessExpressionSyntax access && access.Expression == name
                            ? access.ToString() : name.ToString()));
                    break;
            }
        }
    }

    /// <summary>The local or parameter that a name uses as a buffer: a byte sequence, or a ReadResult whose Buffer is read.</summary>
    private static ISymbol? BufferOf(IdentifierNameSyntax name, SemanticModel model, CancellationToken cancellationToken)
    {
        ISymbol? symbol = model.GetSymbolInfo(name, cancellationToken).Symbol;
        ITypeSymbol? type = symbol switch
        {
            ILocalSymbol local => local.Type,
            IParameterSymbol parameter => parameter.Type,
            _ => null,
        };
        bool isBuffer = type.IsByteSequence()
            || (type.Is("System.IO.Pipelines", "ReadResult")
                && name.Parent is MemberAccessExpressionSyntax { Name.Identifier.Text: "Buffer" } access && access.Expression == name);
        return isBuffer ? symbol : null;
    }

    private static bool IsOfNameOf(IdentifierNameSyntax name)
        => name.Parent?.Parent?.Parent is InvocationExpressionSyntax { Expression: IdentifierNameSyntax { Identifier.Text: "nameof" } };

    private static IEnumerable<StatementSyntax> StatementsAfter(StatementSyntax statement)
        => statement.Parent switch
        {
            BlockSyntax block => block.Statements.SkipWhile(one => one != statement).Skip(1),
            SwitchSectionSyntax section => section.Statements.SkipWhile(one => one != statement).Skip(1),
            GlobalStatementSyntax { Parent: CompilationUnitSyntax unit } global
                => unit.Members.OfType<GlobalStatementSyntax>().SkipWhile(one => one != global).Skip(1).Select(one => one.Statement),
            _ => [],
        };
}
