using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;

namespace Pipelines.File.CodeFixes;

/// <summary>Where code may await.</summary>
internal static class AsyncCode
{
    /// <summary>
    /// Whether the innermost function around a node is async; <see langword="null"/>: there is none, as around top-level statements.
    /// </summary>
    internal static bool? IsAsyncAround(SyntaxNode node)
        => node.FirstAncestorOrSelf<SyntaxNode>(one => one is BaseMethodDeclarationSyntax or LocalFunctionStatementSyntax
            or AnonymousFunctionExpressionSyntax or AccessorDeclarationSyntax) switch
        {
            MethodDeclarationSyntax method => method.Modifiers.Any(SyntaxKind.AsyncKeyword),
            LocalFunctionStatementSyntax function => function.Modifiers.Any(SyntaxKind.AsyncKeyword),
            AnonymousFunctionExpressionSyntax function => function.AsyncKeyword.RawKind != 0,
            null => null,
            _ => false,
        };
}
