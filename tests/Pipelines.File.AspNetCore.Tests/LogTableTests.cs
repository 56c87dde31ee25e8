using System.Reflection;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>The table of docs/events.md with the messages that the package logs: their numbers, names and levels.</summary>
public sealed class LogTableTests
{
    [Fact]
    public void Messages_AreThoseOfThePage()
    {
        string page = File.ReadAllText(Path.Combine(AppContext.BaseDirectory, "Documentation", "docs", "events.md"));
        string[] told = [.. page.Split('\n').SkipWhile(line => !line.StartsWith("| number |", StringComparison.Ordinal)).Skip(2)
            .TakeWhile(line => line.StartsWith('|'))
            .Select(line => string.Join(' ', line.Split('|', StringSplitOptions.TrimEntries)[1..4]))];
        string[] known = [.. typeof(ServingLog).GetMethods(BindingFlags.Static | BindingFlags.NonPublic | BindingFlags.Public)
            .Select(method => method.GetCustomAttribute<LoggerMessageAttribute>()).Where(message => message is not null)
            .OrderBy(message => message!.EventId)
            .Select(message => $"{message!.EventId} `{message.EventName}` {message.Level.ToString().ToLowerInvariant()}")];
        Assert.Equal(known, told);
    }
}
