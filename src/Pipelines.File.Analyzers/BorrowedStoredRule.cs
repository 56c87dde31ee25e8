using System.Collections.Immutable;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;
using Microsoft.CodeAnalysis.Diagnostics;

namespace Pipelines.File.Analyzers;

/// <summary>
/// Finds what a loop lends for one step (a line of ReadLineSequencesAsync, a batch, a followed line) and what is stored in something that
/// outlives the step: a collection, a channel, a field, a local outside the loop, a return value, a task that nobody waits for.
/// </summary>
internal static class BorrowedStoredRule
{
    private static readonly ImmutableHashSet<string> s_collecting = ImmutableHashSet.Create(
        "ToListAsync", "ToArrayAsync", "ToHashSetAsync", "LastAsync", "LastOrDefaultAsync", "Reverse", "OrderBy", "OrderByDescending",
        "FirstAsync", "FirstOrDefaultAsync", "SingleAsync", "SingleOrDefaultAsync", "ElementAtAsync", "ElementAtOrDefaultAsync");

    private static readonly ImmutableHashSet<string> s_storing = ImmutableHashSet.Create(
        "Add", "AddFirst", "AddLast", "AddRange", "Append", "Enqueue", "Insert", "InsertRange", "Prepend", "Push", "TryAdd", "TryWrite",
        "UnionWith", "WriteAsync");

    internal static void AnalyzeCall(SyntaxNodeAnalysisContext context)
    {
        if (context.Node is InvocationExpressionSyntax { Expression: MemberAccessExpressionSyntax access }
            && s_collecting.Contains(access.Name.Identifier.Text)
            && KnownTypes.IsLending(access.Expression, context.SemanticModel, context.CancellationToken))
        {
            context.ReportDiagnostic(Diagnostic.Create(Rules.BorrowedStored, access.Name.GetLocation(), access.Name.Identifier.Text));
        }
    }

    internal static void AnalyzeLoop(SyntaxNodeAnalysisContext context)
    {
        ForEachStatementSyntax loop = (ForEachStatementSyntax)context.Node;
        SemanticModel model = context.SemanticModel;
        if (!KnownTypes.IsLending(loop.Expression, model, context.CancellationToken)
            || model.GetDeclaredSymbol(loop, context.CancellationToken) is not { } borrowed)
        {
            return;
        }

        // The lines of a batch are borrowed with it.
        List<ISymbol> all = [borrowed];
        foreach (SyntaxNode node in loop.Statement.DescendantNodes())
        {
            if (node is ForEachStatementSyntax inner && FirstOf(inner.Expression) is { } collection && IsOneOf(all, collection)
                && model.GetDeclaredSymbol(inner, context.CancellationToken) is { } item && item.Type.IsBorrowed())
            {
                all.Add(item);
            }
            else if (node is IdentifierNameSyntax name && IsOneOf(all, name)
                && (IsStored(name, loop, model, context.CancellationToken) || IsCaptured(name, loop, model, context.CancellationToken)))
            {
                context.ReportDiagnostic(Diagnostic.Create(Rules.BorrowedStored, name.GetLocation(), name.Identifier.Text));
            }
        }

        bool IsOneOf(List<ISymbol> symbols, IdentifierNameSyntax name)
            => symbols.Exists(symbol => symbol.Name == name.Identifier.Text)
                && model.GetSymbolInfo(name, context.CancellationToken).Symbol is { } found
                && symbols.Exists(symbol => SymbolEqualityComparer.Default.Equals(symbol, found));
    }

    private static IdentifierNameSyntax? FirstOf(ExpressionSyntax expression)
        => expression is MemberAccessExpressionSyntax access ? FirstOf(access.Expression) : expression as IdentifierNameSyntax;

    private static bool IsStored(
        IdentifierNameSyntax name, ForEachStatementSyntax loop, SemanticModel model, CancellationToken cancellationToken)
    {
        // A slice of a line, its bytes, and the lines of a batch refer to the same memory.
        ExpressionSyntax line = name;
        for (; ; )
        {
            if (line.Parent is MemberAccessExpressionSyntax { Name.Identifier.Text: "Slice", Parent: InvocationExpressionSyntax slice })
            {
                line = slice;
            }
            else if (line.Parent is MemberAccessExpressionSyntax { Name.Identifier.Text: "Bytes" or "Lines" } member
                && member.Expression == line)
            {
                line = member;
            }
            else
            {
                break;
            }
        }

        switch (line.Parent)
        {
            // Only a collection of such things, as List<ReadOnlySequence<byte>>: another method of that name may copy them.
            case ArgumentSyntax { Parent.Parent: InvocationExpressionSyntax { Expression: MemberAccessExpressionSyntax access } call }
                when s_storing.Contains(access.Name.Identifier.Text):
                return !IsLocalToStep(access.Expression, loop, model, cancellationToken)
                    && model.GetSymbolInfo(call, cancellationToken).Symbol
                        is IMethodSymbol { ContainingType: INamedTypeSymbol { IsGenericType: true } type }
                    && (type.ContainingNamespace.ToDisplayString().StartsWith("System.Collections", StringComparison.Ordinal)
                        || type.Is("System.Threading.Channels", "ChannelWriter"))
                    && type.TypeArguments.Any(argument => argument.IsBorrowed() || argument.IsBytes());
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

    /// <summary>Whether it is used within a lambda that a task runs for which this step does not wait.</summary>
    private static bool IsCaptured(
        IdentifierNameSyntax name, ForEachStatementSyntax loop, SemanticModel model, CancellationToken cancellationToken)
    {
        if (KnownTypes.BodyAround(name) is not AnonymousFunctionExpressionSyntax
            {
                Parent: ArgumentSyntax { Parent.Parent: InvocationExpressionSyntax call },
            }
            || !loop.Span.Contains(call.Span) || model.GetSymbolInfo(call, cancellationToken).Symbol is not IMethodSymbol method)
        {
            return false;
        }

        return method.ContainingType.Is("System.Threading", "ThreadPool") || ((method.ContainingType.Is("System.Threading.Tasks", "Task")
                || method.ContainingType.Is("System.Threading.Tasks", "TaskFactory"))
            && call.Parent switch
            {
                ExpressionStatementSyntax => true,
                ArgumentSyntax { Parent.Parent: InvocationExpressionSyntax { Expression: MemberAccessExpressionSyntax access } }
                    => s_storing.Contains(access.Name.Identifier.Text)
                        && !IsLocalToStep(access.Expression, loop, model, cancellationToken),
                AssignmentExpressionSyntax assignment => !IsLocalToStep(assignment.Left, loop, model, cancellationToken),
                _ => false,
            });
    }

    /// <summary>
    /// Whether the place is, or belongs to, a local of the loop's body, which is assumed not to live until the next step.
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
