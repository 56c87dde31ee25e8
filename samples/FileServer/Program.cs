using System.Runtime.InteropServices;
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

// SIGXFSZ, which ends a process that exceeds a limit on the length of files (ulimit -f). Handled, it fails the upload alone.
const PosixSignal FileSizeExceeded = (PosixSignal)25;
using PosixSignalRegistration? handled = OperatingSystem.IsWindows() ? null
    : PosixSignalRegistration.Create(FileSizeExceeded, static signal => signal.Cancel = true);

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
