using System.Globalization;
using FilePipelinesBenchmarks.Measuring;

namespace FilePipelinesBenchmarks.Reporting;

/// <summary>
/// What one machine has made of the same questions: copies and calls cost differently on each, so one machine's ratios are not another's.
/// </summary>
/// <param name="Machine">The processor.</param>
/// <param name="Commit">Of the library.</param>
/// <param name="Reading">Reading against FileStream.</param>
/// <param name="Copy">Reading against the kernel's bare copy.</param>
/// <param name="Writing">Writing against FileStream.</param>
internal sealed record MachineFigures(string Machine, string Commit, double Reading, double Copy, double Writing)
{
    internal const string FileName = "machines.csv";

    // Headlines that carry over from machine to machine well enough to be compared.
    private static readonly string[] s_keys = ["headline-reading", "headline-copy", "headline-writing"];

    private const string Head = "machine,commit,reading_to_filestream,reading_to_copy,writing_to_filestream";

    /// <summary>Those of other machines that the folder has, with this run's.</summary>
    /// <param name="folder">Where the last report was written.</param>
    /// <param name="surroundings">The machine.</param>
    /// <param name="headlines">This run's answers.</param>
    internal static IReadOnlyList<MachineFigures> Collect(string folder, Surroundings surroundings, IReadOnlyList<Headline> headlines)
    {
        string path = Path.Join(folder, FileName);
        List<MachineFigures> machines = File.Exists(path)
            ? [.. File.ReadLines(path).Skip(1).Select(Parse).Where(other => other.Machine != surroundings.Machine)] : [];
        double[] own = [.. s_keys.Select(key => headlines.FirstOrDefault(headline => headline.Key == key)?.Bars[0].Value ?? double.NaN)];
        machines.Insert(0, new MachineFigures(surroundings.Machine, surroundings.Commit, own[0], own[1], own[2]));
        return machines;
    }

    internal static string ToCsv(IEnumerable<MachineFigures> machines)
        => string.Join('\n', machines.Select(machine => string.Create(CultureInfo.InvariantCulture, $"{machine.Machine.Replace(',', ';')},"
            + $"{machine.Commit},{machine.Reading:0.000},{machine.Copy:0.000},{machine.Writing:0.000}")).Prepend(Head)) + "\n";

    private static MachineFigures Parse(string line)
    {
        string[] fields = line.Split(',');
        double[] figures = [.. fields.Skip(2).Select(field => double.Parse(field, CultureInfo.InvariantCulture))];
        return new MachineFigures(fields[0].Replace(';', ','), fields[1], figures[0], figures[1], figures[2]);
    }
}
