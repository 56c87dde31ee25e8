using System.Diagnostics;
using System.Globalization;

namespace FilePipelinesBenchmarks.Measuring;

/// <summary>
/// Measures each candidate in a process of its own, a new one for every sample: what one leaves in the heap, in pools and in the
/// just-in-time compiler's profile is not the others'. The process is this program again, with the command of <see cref="Alone"/>.
/// </summary>
/// <param name="key">The section's.</param>
/// <param name="minRounds">How many, at least.</param>
/// <param name="maxRounds">How many, at most.</param>
internal sealed class ProcessMeasurement(string key, int minRounds, int maxRounds) : Measurement(minRounds, maxRounds)
{
    /// <summary>Starts this program with other arguments; what it prints is redirected.</summary>
    internal static ProcessStartInfo ThisProgram(params ReadOnlySpan<string> arguments) => ProgramIn(AppContext.BaseDirectory, arguments);

    /// <summary>The same program in another folder.</summary>
    internal static ProcessStartInfo ProgramIn(string folder, params ReadOnlySpan<string> arguments)
    {
        ProcessStartInfo start = new(Environment.ProcessPath!) { RedirectStandardOutput = true, RedirectStandardError = true };
        if (Path.GetFileNameWithoutExtension(start.FileName) == "dotnet")
        {
            start.ArgumentList.Add(Path.Join(folder, Path.GetFileName(typeof(ProcessMeasurement).Assembly.Location)));
        }
        else
        {
            start.FileName = Path.Join(folder, Path.GetFileName(start.FileName));
        }

        foreach (string argument in arguments)
        {
            start.ArgumentList.Add(argument);
        }

        return start;
    }

    internal override Task PrepareAsync(IReadOnlyList<Candidate> candidates) => Task.CompletedTask;

    protected override ValueTask<Func<int, ValueTask<Sample>>> BeginAsync(Column column)
        => ValueTask.FromResult<Func<int, ValueTask<Sample>>>(index => TakeAsync(column.Name, column.Candidates[index].Name));

    private async ValueTask<Sample> TakeAsync(string point, string way)
    {
        ProcessStartInfo start = ThisProgram(Alone.Command, key, point, way);

        // Methods are compiled for good as soon as they have been called often enough, and not once nothing new was called for a while: a
        // short life is enough then.
        start.Environment["DOTNET_TC_CallCountingDelayMs"] = "0";
        using Process process = Process.Start(start)!;
        Task<string> errors = process.StandardError.ReadToEndAsync();
        string output = await process.StandardOutput.ReadToEndAsync();
        await process.WaitForExitAsync();
        double[] figures = [.. output.Split(' ', StringSplitOptions.RemoveEmptyEntries | StringSplitOptions.TrimEntries)
            .Select(field => double.TryParse(field, CultureInfo.InvariantCulture, out double figure) ? figure : double.NaN)];
        return process.ExitCode == 0 && figures is [var microseconds, var cpu, var allocated]
            ? new Sample(microseconds, cpu, allocated)
            : throw new InvalidOperationException($"The process for {way} ended with status {process.ExitCode}: {output}{await errors}");
    }
}
