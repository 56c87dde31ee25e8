namespace FilePipelines.Repository.Tests;

/// <summary>
/// Every example of the documentation, but those that .ci/recipes runs, in one program, which is built once, as a reader would build it:
/// warnings are errors, and nothing is known but the libraries.
/// </summary>
public sealed class ExampleProgram : IAsyncLifetime
{
    private readonly string _folder = Directory.CreateTempSubdirectory("examples-").FullName;

    /// <summary>All of them, by name.</summary>
    internal static IReadOnlyDictionary<string, Example> Examples { get; } = Directory
        .EnumerateFiles(Path.Combine(AppContext.BaseDirectory, "Documentation"), "*.md", SearchOption.AllDirectories)
        .Order(StringComparer.Ordinal)
        .SelectMany(path => Example.AllOf(Path.GetRelativePath(Path.Combine(AppContext.BaseDirectory, "Documentation"), path)
            .Replace('\\', '/'), File.ReadAllText(path).ReplaceLineEndings("\n")))
        .ToDictionary(example => example.Name);

    public async ValueTask InitializeAsync()
    {
        StringBuilder program = new("return await (args[0] switch\n{\n");
        foreach (Example example in Examples.Values.Where(example => !example.IsElsewhere))
        {
            await File.WriteAllTextAsync(Path.Combine(_folder, example.Namespace + ".cs"), example.ToSource());
            if (example.IsProgram)
            {
                program.Append(CultureInfo.InvariantCulture,
                    $"    \"{example.Name}\" => RunAsync({example.Namespace}.Program.RunAsync),\n");
            }
        }

        program.Append("    _ => throw new ArgumentException(args[0]),\n});\n\n"
            + "static async Task<int> RunAsync(Func<string[], Task> example)\n{\n    await example([]);\n    return 0;\n}\n");
        await File.WriteAllTextAsync(Path.Combine(_folder, "Program.cs"), program.ToString());
        await File.WriteAllTextAsync(Path.Combine(_folder, "Examples.csproj"), $"""
            <Project Sdk="Microsoft.NET.Sdk.Web">
              <PropertyGroup>
                <TargetFramework>net10.0</TargetFramework>
                <Nullable>enable</Nullable>
                <ImplicitUsings>enable</ImplicitUsings>
                <TreatWarningsAsErrors>true</TreatWarningsAsErrors>
                <UseSharedCompilation>false</UseSharedCompilation>
              </PropertyGroup>
              <ItemGroup>
                {string.Concat(Packages.All.Select(package => $"<Reference Include=\"{package.Location}\" />"))}
              </ItemGroup>
            </Project>
            """);

        // Whatever lies above the temporary folder is not for this build.
        await File.WriteAllTextAsync(Path.Combine(_folder, ".editorconfig"), "root = true\n");
        foreach (string name in new[] { "Directory.Build.props", "Directory.Build.targets", "Directory.Packages.props" })
        {
            await File.WriteAllTextAsync(Path.Combine(_folder, name), "<Project />");
        }

        using Process build = Start(
            _folder, ["build", "-c", "Release", "-o", Path.Combine(_folder, "out"), "--nologo", "-nodeReuse:false"]);
        string output = await build.StandardOutput.ReadToEndAsync();
        await build.WaitForExitAsync();
        Assert.True(build.ExitCode == 0, output);
    }

    public ValueTask DisposeAsync()
    {
        Directory.Delete(_folder, recursive: true);
        return ValueTask.CompletedTask;
    }

    /// <summary>Starts an example in a folder.</summary>
    internal Process Start(Example example, string folder) => Start(folder, [Path.Combine(_folder, "out", "Examples.dll"), example.Name]);

    private static Process Start(string folder, string[] arguments)
    {
        ProcessStartInfo start = new(Environment.GetEnvironmentVariable("DOTNET_HOST_PATH") ?? "dotnet", arguments)
        {
            WorkingDirectory = folder,
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };

        // What dotnet test has set for itself is not for another build.
        foreach (string name
            in start.Environment.Keys.Where(name => name.StartsWith("MSBUILD", StringComparison.OrdinalIgnoreCase)).ToList())
        {
            start.Environment.Remove(name);
        }

        start.Environment["ASPNETCORE_URLS"] = "http://127.0.0.1:0";
        start.Environment["DOTNET_CLI_UI_LANGUAGE"] = "en";
        start.Environment["DOTNET_CLI_USE_MSBUILD_SERVER"] = "0";
        Process process = Process.Start(start)!;
        process.StandardInput.Close();
        return process;
    }
}
