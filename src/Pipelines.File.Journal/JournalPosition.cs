using System.Diagnostics.CodeAnalysis;
using System.Globalization;

namespace Pipelines.File;

/// <summary>
/// A place between two records of a journal, which says of which journal: what was read before it differs from other records that have
/// got the same numbers. As text: <c>0f8e6c1b3a5d4e7f9a2b4c6d8e0f1a2b:1f3c5a7e9b2d4f60:184</c>.
/// </summary>
/// <param name="Id">The journal: <see cref="Journal.Id"/>.</param>
/// <param name="Epoch">
/// A random number of the record before the place; it is another one for what is appended after a repair.
/// </param>
/// <param name="Sequence">The number of the record behind the place.</param>
/// <example>
/// <code>
/// using Pipelines.File;
///
/// await using Journal journal = await Journal.OpenAsync("positions");
/// await journal.AppendAsync("first"u8.ToArray());
/// string text = journal.Position.ToString();
/// await journal.AppendAsync("second"u8.ToArray());
/// await foreach (JournalBatch batch in journal.ReadBatchesAsync(JournalPosition.Parse(text)))
/// {
///     Console.WriteLine(batch.FirstSequence);
/// }
/// </code>
/// </example>
public readonly record struct JournalPosition(Guid Id, long Epoch, long Sequence) : IParsable<JournalPosition>
{
    // Parsing a Guid ignores white space around it.
    private const int IdLength = 32;

    /// <summary>Parses the text that <see cref="ToString"/> has returned.</summary>
    /// <param name="s">The text.</param>
    /// <param name="provider">Not used: the text is the same everywhere.</param>
    /// <exception cref="ArgumentNullException"><paramref name="s"/> is <see langword="null"/>.</exception>
    /// <exception cref="FormatException">The text is not that of a position.</exception>
    public static JournalPosition Parse(string s, IFormatProvider? provider = null)
    {
        ArgumentNullException.ThrowIfNull(s);
        return TryParse(s, provider, out JournalPosition result) ? result
            : throw new FormatException(
                "This is not the text of a JournalPosition: 32 and up to 16 hexadecimal digits and a number, with colons between.");
    }

    /// <summary>Parses the text that <see cref="ToString"/> has returned.</summary>
    /// <param name="s">The text, or <see langword="null"/>.</param>
    /// <param name="result">The position; <see langword="default"/> if the method returns <see langword="false"/>.</param>
    /// <returns>Whether the text is that of a position.</returns>
    public static bool TryParse([NotNullWhen(true)] string? s, out JournalPosition result) => TryParse(s, null, out result);

    /// <inheritdoc/>
    public static bool TryParse([NotNullWhen(true)] string? s, IFormatProvider? provider, out JournalPosition result)
    {
        result = default;
        if (s is null || s.Contains('\0', StringComparison.Ordinal) || s.Split(':') is not [string id, string epoch, string sequence]
            || id.Length != IdLength || !Guid.TryParseExact(id, "N", out Guid parsed)
            || !long.TryParse(epoch, NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out long number)
            || !long.TryParse(sequence, NumberStyles.None, CultureInfo.InvariantCulture, out long place))
        {
            return false;
        }

        result = new JournalPosition(parsed, number, place);
        return true;
    }

    /// <summary>Returns the three as text, with colons between.</summary>
    public override string ToString() => string.Create(CultureInfo.InvariantCulture, $"{Id:N}:{Epoch:x}:{Sequence}");
}
