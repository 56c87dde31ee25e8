using System.Reflection;
using System.Xml.Linq;
using Pipelines.File;
using Pipelines.File.AspNetCore;

namespace FilePipelines.Repository.Tests;

/// <summary>docs/options.md is made of the doc comments, so that the two cannot differ.</summary>
public sealed partial class OptionsPageTests
{
    private static readonly Type[] s_options =
    [
        typeof(FilePipeReaderOptions), typeof(FilePipeWriterOptions), typeof(FileBufferingPipeOptions), typeof(LogFollowerOptions),
        typeof(JournalOptions), typeof(FilePipelinesOptions), typeof(FileEndpointOptions), typeof(SaveBodyOptions),
        typeof(ResumableUploadOptions), typeof(FileCacheOptions),
    ];

    [Fact]
    public void OptionsPage_IsMadeOfTheDocComments()
    {
        string folder = Path.Combine(AppContext.BaseDirectory, "Documentation", "docs");
        string actual = Path.Combine(AppContext.BaseDirectory, "options.actual.md");
        StringBuilder page = new("# Options\n\nThis page is generated from the doc comments, and a test compares the two. "
            + "Any number of readers, writers, followers or requests may share one options object.\n");
        foreach (Type type in s_options)
        {
            Write(page, type);
        }

        File.WriteAllText(actual, page.ToString());
        Assert.True(
            File.ReadAllText(Path.Combine(folder, "options.md")) == page.ToString(),
            $"docs/options.md is not what the doc comments say. Copy {actual} over it.");
    }

    private static void Write(StringBuilder page, Type type)
    {
        XDocument documentation = XDocument.Load(Path.ChangeExtension(type.Assembly.Location, ".xml"), LoadOptions.PreserveWhitespace);
        Dictionary<string, XElement> members = documentation.Descendants("member")
            .ToDictionary(member => (string)member.Attribute("name")!);
        XElement typeMember = members[$"T:{type.FullName}"];
        page.Append(CultureInfo.InvariantCulture, $"\n## {type.Name}\n\n{TextOf(typeMember.Element("summary"))}\n");
        if (typeMember.Element("example")?.Element("code") is { } code)
        {
            page.Append(CultureInfo.InvariantCulture, $"\n<!-- example: compile -->\n```csharp\n{CodeOf(code)}\n```\n");
        }

        page.Append("\n| option | type | meaning |\n| --- | --- | --- |\n");
        foreach (PropertyInfo property in type.GetProperties(BindingFlags.Public | BindingFlags.Instance | BindingFlags.DeclaredOnly))
        {
            page.Append(CultureInfo.InvariantCulture, $"| `{property.Name}` | `{NameOf(property)}` | "
                + $"{TextOf(members[$"P:{type.FullName}.{property.Name}"].Element("summary"))} |\n");
        }
    }

    private static string NameOf(PropertyInfo property)
    {
        Type type = Nullable.GetUnderlyingType(property.PropertyType) ?? property.PropertyType;
        string name = NameOf(type);
        bool isNullable = type != property.PropertyType
            || new NullabilityInfoContext().Create(property).ReadState == NullabilityState.Nullable;
        return isNullable ? name + "?" : name;
    }

    private static string NameOf(Type type) => type.IsGenericType
        ? $"{type.Name.Split('`')[0]}<{string.Join(", ", type.GetGenericArguments().Select(NameOf))}>"
        : Keyword(type.Name);

    private static string Keyword(string name) => name switch
    {
        "Int32" => "int",
        "Int64" => "long",
        "Boolean" => "bool",
        "String" => "string",
        "Byte" => "byte",
        _ => name,
    };

    /// <summary>The sentences of a doc comment, on one line.</summary>
    private static string TextOf(XElement? element)
    {
        StringBuilder text = new();
        foreach (XNode node in element?.Nodes() ?? [])
        {
            text.Append(node switch
            {
                XText words => words.Value,
                XElement { Name.LocalName: "see" } link when (string?)link.Attribute("langword") is { } word => $"`{word}`",
                XElement { Name.LocalName: "see" } link when (string?)link.Attribute("href") is { } address
                    => $"[{(link.Value.Length > 0 ? link.Value : address)}]({address})",
                XElement { Name.LocalName: "see" } link => $"`{ShortOf((string)link.Attribute("cref")!)}`",
                XElement { Name.LocalName: "c" } code => $"`{code.Value}`",
                XElement other => TextOf(other),
                _ => string.Empty,
            });
        }

        return Spaces().Replace(text.ToString(), " ").Trim().Replace("|", "\\|", StringComparison.Ordinal);
    }

    // "M:Namespace.Type.Member(parameters)": the type is said where it is not plain.
    private static string ShortOf(string reference)
    {
        string[] parts = reference[2..].Split('(')[0].Split('.');
        return reference[0] == 'T' ? parts[^1] : s_options.Any(type => type.Name == parts[^2]) ? parts[^1] : $"{parts[^2]}.{parts[^1]}";
    }

    private static string CodeOf(XElement code)
    {
        string[] lines = [.. code.Value.Trim('\n', ' ').Split('\n')];
        int indent = lines.Skip(1).Where(line => line.Trim().Length > 0).Select(line => line.Length - line.TrimStart().Length)
            .DefaultIfEmpty(0).Min();
        return string.Join(
            '\n', lines.Select((line, index) => (index == 0 ? line.TrimStart() : line[Math.Min(indent, line.Length)..]).TrimEnd()));
    }

    [GeneratedRegex(@"\s+")]
    private static partial Regex Spaces();
}
