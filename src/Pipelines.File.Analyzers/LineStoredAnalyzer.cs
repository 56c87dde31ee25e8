using System.Collections.Immutable;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;
using Microsoft.CodeAnalysis.CSharp.Syntax;
using Microsoft.CodeAnalysis.Diagnostics;

namespace Pipelines.File.Analyzers;

/// <summary>Finds lines of ReadLinesAsync that are put into something that outlives the step of the loop: a collection, a field, a local from outside.</summary>
[DiagnosticAnalyzer(LanguageNames.CSharp)]
public sealed class LineStoredAnalyzer : DiagnosticAnalyzer
{
    private static readonly ImmutableHashSet<string> s_collecting = ImmutableHashSet.Create("ToListAsync", "ToArrayAsync", "ToHashSetAsync", "LastAsync", "LastOrDefaultAsync", "Reverse", "OrderBy");

    private static readonly ImmutableHashSet<string> s_storing = ImmutableHashSet.Create("Add", "AddFirst", "AddLast", "Append", "Enqueue", "Insert", "Prepend", "Push", "TryAdd", "TryWrite");

    /// <inheritdoc/>
    public override ImmutableArray<DiagnosticDescriptor> SupportedDiagnostics { get; } = ImmutableArray.Create(Rules.LineStored);

    /// <inheritdoc/>
    public override void Initialize(AnalysisContext context)
    {
        context.ConfigureGeneratedCodeAnalysis(GeneratedCodeAnalysisFlags.None);
        context.EnableConcurrentExecution();
        context.RegisterSyntaxNodeAction(AnalyzeCall, SyntaxKind.InvocationExpression);
        context.RegisterSyntaxNodeAction(AnalyzeLoop, SyntaxKind.ForEachStatement);
    }

    private static void AnalyzeCall(SyntaxNodeAnalysisContext context)
    {
        if (context.Node is InvocationExpressionSyntax { Expression: MemberAccessExpressionSyntax access }
            && s_collecting.Contains(access.Name.Identifier.Text)
            && KnownTypes.IsReadLines(access.Expression, context.SemanticModel, context.CancellationToken))
        {
            context.ReportDiagnostic(Diagnostic.Create(Rules.LineStored, access.Name.GetLocation()));
        }
    }

    private static void AnalyzeLoop(SyntaxNodeAnalysisContext context)
    {
        ForEachStatementSyntax loop = (ForEachStatementSyntax)context.Node;
        SemanticModel model = context.SemanticModel;
        if (!KnownTypes.IsReadLines(loop.Expression, model, context.CancellationToken) || model.GetDeclaredSymbol(loop, context.CancellationToken) is not { } line)
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

    private static bool IsStored(IdentifierNameSyntax name, ForEachStatementSyntax loop, SemanticModel model, CancellationToken cancellationToken)
    {
        switch (name.Parent)
        {
            // Only where the method takes lines: List<ReadOnlySequence<byte>>.Add, and not a method that copies.
            case ArgumentSyntax { Parent.Parent: InvocationExpressionSyntax { Expression: MemberAccessExpressionSyntax access } call } when s_storing.Contains(access.Name.Identifier.Text):
                return model.GetSymbolInfo(call, cancellationToken).Symbol is IMethodSymbol { ContainingType: INamedTypeSymbol { IsGenericType: true } type }
                    && (type.ContainingNamespace.ToDisplayString().StartsWith("System.Collections", StringComparison.Ordinal) || type.Is("System.Threading.Channels", "ChannelWriter"))
                    && type.TypeArguments.Any(argument => argument.IsByteSequence());
            case AssignmentExpressionSyntax assignment when assignment.Right == name:
                return model.GetSymbolInfo(assignment.Left, cancellationToken).Symbol switch
                {
                    ILocalSymbol local => !loop.Span.Contains(local.Locations[0].SourceSpan),
                    IFieldSymbol or IPropertySymbol => true,
                    _ => assignment.Left is ElementAccessExpressionSyntax,
                };
            default:
                return false;
        }
    }
}
