using System.Diagnostics;
using System.Globalization;

namespace FilePipelines.Devices.Tests;

/// <summary>
/// A program that appends and replaces is killed at random moments and started again, and compares its files with an expected state.
/// PIPELINES_FILE_CRASH_SECONDS (8) says how long, and PIPELINES_FILE_SEED repeats its choices.
/// </summary>
[Trait("Category", StressTime.Category)]
public sealed class CrashProgramTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task Program_KilledAtRandomMoments_FindsWhatItHasDone()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Linux only: kill -9.");
        Random random = new(Given.Seed);
        Stopwatch time = Stopwatch.StartNew();
        int kills = 0;
        for (; time.Elapsed.TotalSeconds < Given.CrashSeconds; kills++)
        {
            using Process child = Start("crash", _folder.Path, (Given.Seed + kills).ToString(CultureInfo.InvariantCulture));
            Task<string> errors = child.StandardError.ReadToEndAsync(_stop);
            string? first = await child.StandardOutput.ReadLineAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop);
            if (first != "checked")
            {
                Assert.Fail($"After {kills} kills, PIPELINES_FILE_SEED={Given.Seed}: {await errors}");
            }

            // Mostly soon, and now and then long enough for a rotation that nobody disturbs.
            await Task.Delay(TimeSpan.FromMilliseconds(random.Next(20) == 0 ? 5000 : random.Next(20, 1000)), _stop);
            if (child.HasExited)
            {
                Assert.Fail($"After {kills} kills, PIPELINES_FILE_SEED={Given.Seed}: {await errors}");
            }

            child.Kill();
            await child.WaitForExitAsync(_stop);
        }

        using Process check = Start("check", _folder.Path);
        string told = await check.StandardError.ReadToEndAsync(_stop);
        await check.WaitForExitAsync(_stop);
        Assert.True(check.ExitCode == 0, $"After {kills} kills, PIPELINES_FILE_SEED={Given.Seed}: {told}");
        TestContext.Current.SendDiagnosticMessage($"{kills} kills in {time.Elapsed.TotalSeconds:F0} s: {Done()}");
    }

    private static Process Start(params string[] arguments)
        => Process.Start(
            new ProcessStartInfo("dotnet", [Path.Combine(AppContext.BaseDirectory, "Pipelines.File.Devices.Child.dll"), .. arguments])
            {
                RedirectStandardOutput = true,
                RedirectStandardError = true,
            })!;

    /// <summary>How many operations were done, by feature.</summary>
    private string Done()
        => string.Join(", ", File.ReadLines(_folder.File("expected")).Select(static line => line.Split(' '))
            .Where(static parts => parts[0] == "done" && parts[1] != "append-first")
            .GroupBy(static parts => parts[1].Split('-')[0])
            .Select(static group => $"{group.Sum(static parts => long.Parse(parts[2], CultureInfo.InvariantCulture) + 1):N0} {group.Key}"));
}
