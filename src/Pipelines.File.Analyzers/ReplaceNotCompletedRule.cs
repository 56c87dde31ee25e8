using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;
using Microsoft.CodeAnalysis.Diagnostics;
using Microsoft.CodeAnalysis.Operations;

namespace Pipelines.File.Analyzers;

/// <summary>
/// Finds a local writer that is created with Replace and disposed, and that the method neither completes nor aborts. A writer that is
/// passed to code that may complete it is not reported.
/// </summary>
internal static class ReplaceNotCompletedRule
{
    internal static void Analyze(SyntaxNodeAnalysisContext context)
    {
        VariableDeclaratorSyntax declarator = (VariableDeclaratorSyntax)context.Node;
        SemanticModel model = context.SemanticModel;
        if (declarator.Initializer is not { Value: { } value }
            || KnownTypes.Unwrap(value) is not InvocationExpressionSyntax call
            || model.GetSymbolInfo(call, context.CancellationToken).Symbol is not IMethodSymbol { Name: "Create" or "OpenAsync" } method
            || !MakesWriter(method)
            || !call.ArgumentList.Arguments.Any(argument => HasReplace(argument.Expression, model, context.CancellationToken))
            || model.GetDeclaredSymbol(declarator, context.CancellationToken) is not ILocalSymbol local)
        {
            return;
        }

        bool isDisposed =
            declarator.Parent?.Parent is LocalDeclarationStatementSyntax { UsingKeyword.RawKind: not 0 } or UsingStatementSyntax;
        foreach (IdentifierNameSyntax name in KnownTypes.BodyAround(declarator).DescendantNodes().OfType<IdentifierNameSyntax>())
        {
            if (name.Identifier.Text != local.Name
                || !SymbolEqualityComparer.Default.Equals(model.GetSymbolInfo(name, context.CancellationToken).Symbol, local))
            {
                continue;
            }

            switch (UseOf(name, model, context.CancellationToken))
            {
                case Use.MayComplete:
                    return;
                case Use.Disposes:
                    isDisposed = true;
                    break;
            }
        }

        if (isDisposed)
        {
            context.ReportDiagnostic(Diagnostic.Create(Rules.ReplaceNotCompleted, declarator.Identifier.GetLocation(), local.Name));
        }
    }

    private static bool MakesWriter(IMethodSymbol method)
        => (method.ReturnType is INamedTypeSymbol { Name: "ValueTask", TypeArguments.Length: 1 } task
            ? task.TypeArguments[0]
            : method.ReturnType).Is("Pipelines.File", "FilePipeWriter");

    /// <summary>Whether the options set Replace, in this expression or in the initializer of the local that it names.</summary>
    private static bool HasReplace(ExpressionSyntax options, SemanticModel model, CancellationToken cancellationToken)
    {
        InitializerExpressionSyntax? initializer = options switch
        {
            BaseObjectCreationExpressionSyntax creation => creation.Initializer,
            WithExpressionSyntax with => with.Initializer,
            _ => null,
        };
        if (initializer is not null)
        {
            return model.GetTypeInfo(options, cancellationToken).Type.Is("Pipelines.File", "FilePipeWriterOptions")
                && initializer.Expressions.Any(
                    one => one is AssignmentExpressionSyntax
                    {
                        Left: IdentifierNameSyntax { Identifier.Text: "Replace" },
                        Right.RawKind: (int)SyntaxKind.TrueLiteralExpression,
                    });
        }

        return options is IdentifierNameSyntax
            && model.GetSymbolInfo(options, cancellationToken).Symbol is ILocalSymbol local
            && local.DeclaringSyntaxReferences.FirstOrDefault()?.GetSyntax(cancellationToken)
                is VariableDeclaratorSyntax { Initializer.Value: BaseObjectCreationExpressionSyntax made }
            && HasReplace(made, model, cancellationToken);
    }

    private static Use UseOf(IdentifierNameSyntax name, SemanticModel model, CancellationToken cancellationToken)
    {
        switch (name.Parent)
        {
            case MemberAccessExpressionSyntax access when access.Expression == name:
                return access.Name.Identifier.Text switch
                {
                    // A stream over the writer completes it when it is closed.
                    "Complete" or "CompleteAsync" or "Abort" or "AsStream" => Use.MayComplete,
                    "Dispose" or "DisposeAsync" => Use.Disposes,
                    "ConfigureAwait" when access.Parent?.Parent is UsingStatementSyntax or EqualsValueClauseSyntax => Use.Disposes,

                    // An extension method of other code may complete it. A method that is passed on, and not called here, counts as a call.
                    _ => IsKnown(model.GetSymbolInfo(access, cancellationToken).Symbol) ? Use.Other : Use.MayComplete,
                };
            case ArgumentSyntax argument:
                // A generic parameter (List<T>.Add) may store it, and other code may complete it.
                return argument.Parent?.Parent is { } call
                    && IsKnown(model.GetSymbolInfo(call, cancellationToken).Symbol)
                    && model.GetOperation(argument, cancellationToken)
                        is IArgumentOperation { Parameter: { OriginalDefinition.Type: not ITypeParameterSymbol } }
                    ? Use.Other : Use.MayComplete;
            case UsingStatementSyntax:
                return Use.Disposes;
            default:
                return Use.MayComplete;
        }
    }

    /// <summary>
    /// Whether a member is .NET's or the library's, none of which completes a writer that is passed to it. Not a member that returns a
    /// writer around it (Tap): completing that one completes it, too.
    /// </summary>
    private static bool IsKnown(ISymbol? symbol)
        => (symbol as IMethodSymbol)?.ReturnType.IsOrDerivesFrom("System.IO.Pipelines", "PipeWriter") != true
            && symbol is { Locations: var places, ContainingNamespace: { } space } && places.All(place => !place.IsInSource)
            && space.ToDisplayString() is var name
            && (name == "System" || name.StartsWith("System.", StringComparison.Ordinal) || name == "Pipelines.File");

    private enum Use
    {
        Other,
        Disposes,
        MayComplete,
    }
}
