using System.Runtime.InteropServices;
using TailSample;

// dotnet run -c Release --project samples/Tail -- --checkpoint tail.json 'logs/*.log'    --help tells more
if (args is ["--help" or "-h"])
{
    Console.WriteLine(Settings.Usage);
    return 0;
}

if (Settings.Parse(args, out string? error) is not { } settings)
{
    Console.Error.WriteLine($"Tail: {error}");
    return 2;
}

using CancellationTokenSource ended = new();
int status = 0;
using PosixSignalRegistration interrupt = PosixSignalRegistration.Create(PosixSignal.SIGINT, context => End(context, 130));
using PosixSignalRegistration terminate = PosixSignalRegistration.Create(PosixSignal.SIGTERM, context => End(context, 143));
try
{
    await Tailing.RunAsync(settings, ended.Token);
    return status;
}
catch (Exception e) when (e is IOException or UnauthorizedAccessException or InvalidDataException or NotSupportedException)
{
    Console.Error.WriteLine($"Tail: {e.Message}");
    return 2;
}

void End(PosixSignalContext context, int asked)
{
    context.Cancel = true;
    status = asked;
    ended.Cancel();
}
