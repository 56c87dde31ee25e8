using System.Net;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Routing;

namespace FilePipelines.Repository.Tests;

/// <summary>samples/Ship, as a process: what its server gets.</summary>
public sealed class ShipTests : IAsyncDisposable
{
    private readonly string _folder = Directory.CreateTempSubdirectory("pipelines-file-ship-").FullName;
    private readonly List<string> _lines = [];
    private readonly List<Process> _started = [];
    private readonly WebApplication _server;
    private int _refusals = 2;

    public ShipTests()
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.WebHost.UseUrls("http://127.0.0.1:0");
        _server = builder.Build();
        _server.MapPost("/", async (HttpRequest request) =>
        {
            using StreamReader body = new(request.Body);
            string text = await body.ReadToEndAsync();
            lock (_lines)
            {
                if (_refusals-- > 0)
                {
                    return Results.StatusCode((int)HttpStatusCode.ServiceUnavailable);
                }

                string log = Path.GetFileName(Uri.UnescapeDataString(request.Headers["Log-Path"].ToString()));
                _lines.AddRange(text.TrimEnd('\n').Split('\n').Select(line => $"{log} {line}"));
                return Results.Ok();
            }
        });
    }

    public async ValueTask DisposeAsync()
    {
        foreach (Process process in _started)
        {
            process.Kill();
            process.Dispose();
        }

        await _server.DisposeAsync();
        Directory.Delete(_folder, recursive: true);
    }

    [Fact]
    public async Task Ship_ServerRefusesAndServiceStops_EveryLineComesOnce()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only: it stops a process with a signal.");
        await _server.StartAsync(TestContext.Current.CancellationToken);
        string one = Path.Combine(_folder, "one.log");
        await File.WriteAllTextAsync(one, "1\n2\n", TestContext.Current.CancellationToken);
        Process first = Start();
        await ExpectAsync("one.log 1", "one.log 2");
        using Process stop = Process.Start("kill", ["-TERM", $"{first.Id}"]);
        await first.WaitForExitAsync(TestContext.Current.CancellationToken)
            .WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);
        Assert.Equal(0, first.ExitCode);

        await File.AppendAllTextAsync(one, "3\n", TestContext.Current.CancellationToken);
        File.Move(one, one + ".1");
        await File.WriteAllTextAsync(one, "4\n", TestContext.Current.CancellationToken);
        Start();
        await ExpectAsync("one.log 1", "one.log 2", "one.log 3", "one.log 4");
        await File.WriteAllTextAsync(Path.Combine(_folder, "two.log"), "5\n", TestContext.Current.CancellationToken);
        await ExpectAsync("one.log 1", "one.log 2", "one.log 3", "one.log 4", "two.log 5");
    }

    /// <summary>Only a checkpoint tells that the rotated file was not read, so there is one before the first batch.</summary>
    [Fact]
    public async Task Ship_IsKilledBeforeTheServerHasTheFirstBatchAndTheLogIsRotated_EveryLineComes()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "A file that is open cannot be renamed elsewhere.");
        await _server.StartAsync(TestContext.Current.CancellationToken);
        SetRefusals(int.MaxValue);
        string one = Path.Combine(_folder, "one.log");
        await File.WriteAllTextAsync(one, "1\n2\n", TestContext.Current.CancellationToken);
        Process first = Start();
        await Eventually.TrueAsync(() => Volatile.Read(ref _refusals) < int.MaxValue);
        first.Kill();
        await first.WaitForExitAsync(TestContext.Current.CancellationToken);

        File.Move(one, one + ".1");
        await File.WriteAllTextAsync(one, "3\n", TestContext.Current.CancellationToken);
        SetRefusals(0);
        Start();
        await ExpectAsync("one.log 1", "one.log 2", "one.log 3");
    }

    private void SetRefusals(int count)
    {
        lock (_lines)
        {
            _refusals = count;
        }
    }

    private Process Start()
    {
        Process process = Process.Start(new ProcessStartInfo("dotnet",
        [
            Path.Combine(AppContext.BaseDirectory, "Ship.dll"), "--to", _server.Urls.Single(), "--logs", Path.Combine(_folder, "*.log"),
            "--checkpoint", Path.Combine(_folder, "position"), "--urls", "http://127.0.0.1:0",
        ]))!;
        _started.Add(process);
        return process;
    }

    private async Task ExpectAsync(params string[] lines)
    {
        await Eventually.TrueAsync(() => Count() >= lines.Length);
        lock (_lines)
        {
            Assert.Equal(lines, _lines);
        }

        int Count()
        {
            lock (_lines)
            {
                return _lines.Count;
            }
        }
    }
}
