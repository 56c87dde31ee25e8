using System.Reflection;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>The packages of others that the report compares with, in the versions that are built in.</summary>
internal static partial class Packages
{
    /// <summary>Name and version of each, as its assembly says.</summary>
    internal static IReadOnlyList<string> Versions { get; } = [.. MakeTypes().Select(type => NameAndVersion(type.Assembly))];

    /// <summary>Whether Nerdbank.Streams and Pipelines.Sockets.Unofficial are among them.</summary>
    internal static bool HasPeers { get; } = Versions.Any(version => version.StartsWith("Nerdbank", StringComparison.Ordinal));

    /// <summary>Whether SQLite is.</summary>
    internal static bool HasSqlite { get; } = Versions.Any(version => version.Contains("Sqlite", StringComparison.Ordinal));

    private static List<Type> MakeTypes()
    {
        List<Type> types = [];
        AddPeers(types);
        AddSqlite(types);
        AddLogPeers(types);
        types.Add(typeof(DotNext.IO.FileReader));
        types.Add(typeof(Microsoft.IO.RecyclableMemoryStream));
        return types;
    }

    static partial void AddPeers(List<Type> types);

    static partial void AddSqlite(List<Type> types);

    static partial void AddLogPeers(List<Type> types);

    // Of what follows the plus, the commit, as much as tells it from others.
    private static string NameAndVersion(Assembly assembly)
    {
        string version = assembly.GetCustomAttribute<AssemblyInformationalVersionAttribute>()?.InformationalVersion
            ?? assembly.GetName().Version?.ToString() ?? "of a version that it does not say";
        int plus = version.IndexOf('+', StringComparison.Ordinal);
        return $"{assembly.GetName().Name} {(plus < 0 ? version : version[..Math.Min(version.Length, plus + 11)])}";
    }
}
