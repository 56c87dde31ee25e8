using System.Buffers;
using System.Diagnostics;
using System.Globalization;
using FilePipelines.Child;
using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>
/// A process that is killed at a random moment: every file is whole, and what was acknowledged is there. PIPELINES_FILE_KILLS (20) says how
/// many times.
/// </summary>
[Trait("Category", StressTime.Category)]
public sealed class KillTests : IDisposable
{
    private const int DefaultKills = 20;

    private static readonly int s_kills =
        int.TryParse(Environment.GetEnvironmentVariable("PIPELINES_FILE_KILLS"), CultureInfo.InvariantCulture, out int kills) ? kills
            : DefaultKills;

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    [Fact]
    public async Task Child_KilledAtARandomMoment_LeavesWholeFilesAndAllThatWasAcknowledged()
    {
        ChildProcess.SkipUnlessLinux();
        int records = 0;
        int leftBehind = 0;
        for (int kill = 0; kill < s_kills; kill++)
        {
            (int replaced, int appended) = await RunAndKillAsync();
            if (replaced >= 0 || File.Exists(_folder.File("file")))
            {
                byte[] content = await File.ReadAllBytesAsync(_folder.File("file"), _stop);
                Assert.True(IsVersion(content, replaced) || IsVersion(content, replaced + 1),
                    $"{content.Length} bytes are neither version {replaced} nor the next.");
            }

            int recovered = await RecoverAsync();
            Assert.InRange(recovered, appended + 1, appended + 2);
            records = recovered;

            // Only in the instant between linkat(2) and rename(2), and under the name that is documented.
            string[] others = [.. Directory.GetFiles(_folder.Path, "*", new EnumerationOptions { AttributesToSkip = 0 })
                .Where(path => Path.GetFileName(path) is not ("file" or "journal"))];
            Assert.All(others, path => Assert.StartsWith(".pipelines-file-", Path.GetFileName(path), StringComparison.Ordinal));
            leftBehind += others.Length;
            Array.ForEach(others, File.Delete);
        }

        TestContext.Current.SendDiagnosticMessage($"{s_kills} kills, {records} records, {leftBehind} temporary names left behind");
    }

    /// <summary>The numbers that the child has said last.</summary>
    private async Task<(int Replaced, int Appended)> RunAndKillAsync()
    {
        using Process process = ChildProcess.Start("exec " + ChildProcess.Command("forever", _folder.Path));
        string first = await process.StandardOutput.ReadLineAsync(_stop) ?? await process.StandardError.ReadToEndAsync(_stop);
        Assert.StartsWith("recovered ", first, StringComparison.Ordinal);
        int recovered = int.Parse(first.AsSpan("recovered ".Length), CultureInfo.InvariantCulture);
        Task<string> rest = process.StandardOutput.ReadToEndAsync(_stop);
        await Task.Delay(TimeSpan.FromMilliseconds(20 + (Random.Shared.NextDouble() * 120)), _stop);
        process.Kill();
        await process.WaitForExitAsync(_stop);
        string[] lines = (await rest).Split('\n');

        // The last line may be cut.
        int Last(string what) => lines.SkipLast(1).Where(line => line.StartsWith(what, StringComparison.Ordinal))
            .Select(line => int.Parse(line.AsSpan(what.Length), CultureInfo.InvariantCulture)).LastOrDefault(recovered - 1);
        return (Last("replaced "), Last("appended "));
    }

    private static bool IsVersion(byte[] content, int number) => number >= 0 && content.AsSpan().SequenceEqual(Pattern.Version(number));

    private async Task<int> RecoverAsync()
    {
        int records = 0;
        await using Journal journal = await Journal.OpenAsync(_folder.File("journal"), cancellationToken: _stop);
        await foreach (JournalBatch batch in journal.ReadBatchesAsync(cancellationToken: _stop))
        {
            foreach (JournalRecord record in batch)
            {
                Assert.True(record.Span.SequenceEqual(Pattern.Version(records)), $"Record {records} is another.");
                records++;
            }
        }

        return records;
    }
}
