using System.Collections.Immutable;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;
using Microsoft.CodeAnalysis.Diagnostics;

namespace Pipelines.File.Analyzers;

/// <summary>
/// Finds lines of ReadLineSequencesAsync that are stored in something that outlives the step of the loop: a collection, a field, a local
/// outside the loop, a return value.
/// </summary>
internal static class LineStoredRule
{
    private static readonly ImmutableHashSet<string> s_collecting = ImmutableHashSet.Create(
        "ToListAsync", "ToArrayAsync", "ToHashSetAsync", "LastAsync", "LastOrDefaultAsync", "Reverse", "OrderBy",
        "FirstAsync", "FirstOrDefaultAsync", "SingleAsync", "SingleOrDefaultAsync", "ElementAtAsync", "ElementAtOrDefaultAsync");

    private static readonly ImmutableHashSet<string> s_storing = ImmutableHashSet.Create(
        "Add", "AddFirst", "AddLast", "Append", "Enqueue", "Insert", "Prepend", "Push", "TryAdd", "TryWrite", "WriteAsync");

    internal static void AnalyzeCall(SyntaxNodeAnalysisContext context)
    {
        if (context.Node is InvocationExpressionSyntax { Expression: MemberAccessExpressionSyntax access }
            && s_collecting.Contains(access.Name.Identifier.Text)
            && KnownTypes.IsReadLines(access.Expression, context.SemanticModel, context.CancellationToken))
        {
            context.ReportDiagnostic(Diagnostic.Create(Rules.LineStored, access.Name.GetLocation()));
        }
    }

    internal static void AnalyzeLoop(SyntaxNodeAnalysisContext context)
    {
        ForEachStatementSyntax loop = (ForEachStatementSyntax)context.Node;
        SemanticModel model = context.SemanticModel;
        if (!KnownTypes.IsReadLines(loop.Expression, model, context.CancellationToken)
            || model.GetDeclaredSymbol(loop, context.CancellationToken) is not { } line
            || !line.Type.IsByteSequence())
        {
            return;
        }

        foreach (IdentifierNameSyntax name in loop.Statement.DescendantNodes().OfType<IdentifierNameSyntax>())
        {
            if (name.Identifier.Text == line.Name
                && SymbolEqualityComparer.Default.Equals(model.GetSymbolInfo(name, context.CancellationToken).Symbol, line)
                && IsStored(name, loop, model, context.CancellationToken))
            {
                context.ReportDiagnostic(Diagnostic.Create(Rules.LineStored, name.GetLocation()));
            }
        }
    }

    private static bool IsStored(
        IdentifierNameSyntax name, ForEachStatementSyntax loop, SemanticModel model, CancellationToken cancellationToken)
    {
        // A slice of a line refers to the same memory.
        ExpressionSyntax line = name;
        while (line.Parent is MemberAccessExpressionSyntax { Name.Identifier.Text: "Slice", Parent: InvocationExpressionSyntax slice })
        {
            line = slice;
        }

        switch (line.Parent)
        {
            // Only a collection of lines, such as List<ReadOnlySequence<byte>>: another method of that name may copy the line.
            case ArgumentSyntax { Parent.Parent: InvocationExpressionSyntax { Expression: MemberAccessExpressionSyntax access } call }
                when s_storing.Contains(access.Name.Identifier.Text):
                return !IsLocalToStep(access.Expression, loop, model, cancellationToken)
                    && model.GetSymbolInfo(call, cancellationToken).Symbol
                        is IMethodSymbol { ContainingType: INamedTypeSymbol { IsGenericType: true } type }
                    && (type.ContainingNamespace.ToDisplayString().StartsWith("System.Collections", StringComparison.Ordinal)
                        || type.Is("System.Threading.Channels", "ChannelWriter"))
                    && type.TypeArguments.Any(argument => argument.IsByteSequence());
            case ReturnStatementSyntax statement:
                // Returning from the method ends the loop, which by default completes the reader: the line is not valid any more.
                return KnownTypes.BodyAround(statement) == KnownTypes.BodyAround(loop);
            case AssignmentExpressionSyntax { Parent: not InitializerExpressionSyntax } assignment when assignment.Right == line:
                return !IsLocalToStep(assignment.Left, loop, model, cancellationToken)
                    && model.GetSymbolInfo(assignment.Left, cancellationToken).Symbol switch
                    {
                        ILocalSymbol => true,
                        IFieldSymbol or IPropertySymbol => true,
                        _ => assignment.Left is ElementAccessExpressionSyntax,
                    };
            default:
                return false;
        }
    }

    /// <summary>
    /// Whether the place is, or belongs to, a local of the loop's body, which is assumed not to live until the next line.
    /// </summary>
    private static bool IsLocalToStep(
        ExpressionSyntax place, ForEachStatementSyntax loop, SemanticModel model, CancellationToken cancellationToken)
    {
        while (place is MemberAccessExpressionSyntax or ElementAccessExpressionSyntax)
        {
            place = place is MemberAccessExpressionSyntax access ? access.Expression : ((ElementAccessExpressionSyntax)place).Expression;
        }

        return model.GetSymbolInfo(place, cancellationToken).Symbol is ILocalSymbol local
            && loop.Span.Contains(local.Locations[0].SourceSpan);
    }
}
