using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;

namespace Pipelines.File.Analyzers;

/// <summary>Recognizes types and methods by name, so that the rules work with every version of the library.</summary>
internal static class KnownTypes
{
    internal static bool Is(this ITypeSymbol? type, string nameSpace, string name)
        => type is not null && type.Name == name && type.ContainingNamespace?.ToDisplayString() == nameSpace;

    internal static bool IsOrDerivesFrom(this ITypeSymbol? type, string nameSpace, string name)
    {
        for (; type is not null; type = type.BaseType)
        {
            if (type.Is(nameSpace, name))
            {
                return true;
            }
        }

        return false;
    }

    internal static bool IsByteSequence(this ITypeSymbol? type)
        => type is INamedTypeSymbol { TypeArguments.Length: 1 } named && type.Is("System.Buffers", "ReadOnlySequence")
            && named.TypeArguments[0].SpecialType == SpecialType.System_Byte;

    /// <summary>Whether it is a sequence or memory of bytes, which somebody else may own.</summary>
    internal static bool IsBytes(this ITypeSymbol? type)
        => type.IsByteSequence() || (type is INamedTypeSymbol { TypeArguments.Length: 1 } named && type.Is("System", "ReadOnlyMemory")
            && named.TypeArguments[0].SpecialType == SpecialType.System_Byte);

    /// <summary>Whether it is valid for one step of the loop that returns it.</summary>
    internal static bool IsBorrowed(this ITypeSymbol? type)
        => type?.Name is "LineBatch" or "RecordBatch" or "FollowedBatch" or "FollowedLine" or "JournalBatch" or "JournalRecord"
            && type.ContainingNamespace?.ToDisplayString() == "Pipelines.File";

    /// <summary>The expression without await, ConfigureAwait, WithCancellation, parentheses and "!".</summary>
    internal static ExpressionSyntax Unwrap(ExpressionSyntax expression)
        => expression switch
        {
            AwaitExpressionSyntax awaited => Unwrap(awaited.Expression),
            ParenthesizedExpressionSyntax parenthesized => Unwrap(parenthesized.Expression),
            PostfixUnaryExpressionSyntax { RawKind: (int)SyntaxKind.SuppressNullableWarningExpression } suppressed
                => Unwrap(suppressed.Operand),
            InvocationExpressionSyntax
            {
                Expression: MemberAccessExpressionSyntax { Name.Identifier.Text: "ConfigureAwait" or "WithCancellation" } access,
            } => Unwrap(access.Expression),
            _ => expression,
        };

    /// <summary>
    /// The body of the method, local function, lambda or accessor around a node, or the whole file for top-level statements.
    /// </summary>
    internal static SyntaxNode BodyAround(SyntaxNode node)
        => node.FirstAncestorOrSelf<SyntaxNode>(one => one is BaseMethodDeclarationSyntax or LocalFunctionStatementSyntax
            or AnonymousFunctionExpressionSyntax or AccessorDeclarationSyntax)
            ?? node.SyntaxTree.GetRoot();

    /// <summary>
    /// Whether a call is one of the library's whose items are valid for one step, or a LINQ method on it that returns some of them.
    /// </summary>
    internal static bool IsLending(ExpressionSyntax expression, SemanticModel model, CancellationToken cancellationToken)
        => Unwrap(expression) is InvocationExpressionSyntax { Expression: MemberAccessExpressionSyntax access } call
            && (access.Name.Identifier.Text is "Where" or "Skip" or "SkipWhile" or "Take" or "TakeWhile"
                ? IsLending(access.Expression, model, cancellationToken) : IsOwn(call, model, cancellationToken));

    private static bool IsOwn(InvocationExpressionSyntax call, SemanticModel model, CancellationToken cancellationToken)
        => model.GetSymbolInfo(call, cancellationToken).Symbol is IMethodSymbol method
            && method.ContainingNamespace?.ToDisplayString() == "Pipelines.File"
            && method.ReturnType is INamedTypeSymbol { TypeArguments.Length: 1 } items
            && items.Is("System.Collections.Generic", "IAsyncEnumerable")
            && (items.TypeArguments[0].IsBorrowed()
                || (method.Name == "ReadLineSequencesAsync" && items.TypeArguments[0].IsByteSequence()));
}
