using FileServerSample;

// dotnet run -c Release --project samples/FileServer -- --root FOLDER
if (args is ["--help"] or ["-h"])
{
    Console.WriteLine(Settings.Usage);
    return 0;
}

if (Settings.Parse(args, out string? error) is not { } settings)
{
    Console.Error.WriteLine($"FileServer: {error}");
    return 2;
}

WebApplication app = FileServerApplication.Build(settings);
try
{
    await app.StartAsync();
}
catch (IOException e)
{
    Console.Error.WriteLine($"FileServer: {e.Message}");
    return 2;
}

Console.WriteLine($"Serving {settings.Root} at {app.Urls.Single()}/ (Ctrl-C ends it)");
await app.WaitForShutdownAsync();
return 0;
