using System.Globalization;

namespace Pipelines.File;

/// <summary>The numbers of docs/journal-format.md.</summary>
internal static class JournalFormat
{
    internal const uint Version = 2;

    /// <summary>Where the first record of a segment begins. Appending never writes into the header's page again.</summary>
    internal const int HeaderLength = 4096;

    internal const int MaxRecordLength = 1024 * 1024 * 1024;

    internal const string Extension = ".journal";

    /// <summary>The name of the file that becomes the next segment.</summary>
    internal const string NextName = "next";

    internal const string LockName = "lock";

    /// <summary>The name of the file that says that a repair has begun: what is appended next begins another epoch.</summary>
    internal const string RepairName = "repair";

    /// <summary>The folder that has the positions of consumers.</summary>
    internal const string ConsumersName = "consumers";

    private const int NameDigits = 20;

    internal static ReadOnlySpan<byte> Magic => "PFJOURNL"u8;

    /// <summary>The file name of the segment whose first record has this number.</summary>
    internal static string NameOf(long first) => first.ToString("D20", CultureInfo.InvariantCulture) + Extension;

    internal static bool TryParseName(string name, out long first)
    {
        first = 0;
        return name.Length == NameDigits + Extension.Length && name.EndsWith(Extension, StringComparison.Ordinal)
            && long.TryParse(name.AsSpan(0, NameDigits), NumberStyles.None, CultureInfo.InvariantCulture, out first);
    }

    /// <summary>The bytes that a record of this length takes, with its header and the zeros behind it.</summary>
    internal static long SizeOf(int length) => Padded((long)RecordHeader.Length + length);

    internal static long Padded(long size) => (size + 7) & ~7L;
}
