using Microsoft.CodeAnalysis;
using Pipelines.File.Analyzers;

namespace FilePipelines.Analyzers.Tests;

/// <summary>Where a rule leads whoever sees it.</summary>
public sealed class RulesTests
{
    [Theory]
    [InlineData("https://host/a/b", "https://host/a/b/blob/main/docs/analyzers.md#pf0001")]
    [InlineData("https://host/a/b.git", "https://host/a/b/blob/main/docs/analyzers.md#pf0001")]
    [InlineData("file:///a/b", null)]
    [InlineData("", null)]
    [InlineData(null, null)]
    public void HelpLink_IsThePageInTheRepository(string? repository, string? link)
        => Assert.Equal(link, Rules.HelpLinkOf(repository, "PF0001"));

    [Fact]
    public void EveryRule_HasAParagraph()
    {
        string[] page = File.ReadAllLines(Path.Combine(AppContext.BaseDirectory, "analyzers.md"));
        foreach (DiagnosticDescriptor rule in new UsageAnalyzer().SupportedDiagnostics)
        {
            Assert.Contains($"## {rule.Id}", page);
        }
    }
}
