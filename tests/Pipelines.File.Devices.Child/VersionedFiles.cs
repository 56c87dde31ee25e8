using System.Buffers.Binary;

namespace FilePipelines.Devices.Child;

/// <summary>Files that hold a version whole, the old one or the new one: what replacements and uploads have in common.</summary>
/// <param name="folder">Their folder, which is made.</param>
/// <param name="verb">What the expected state calls an operation: <c>replace</c> for <c>replace-0</c>.</param>
/// <param name="count">How many there are.</param>
/// <param name="state">What is expected.</param>
/// <param name="versionOf">The content of a file in a version, which begins with the version.</param>
internal sealed class VersionedFiles(string folder, string verb, int count, ExpectedState state, Func<int, int, byte[]> versionOf)
{
    private readonly string _folder = Directory.CreateDirectory(folder).FullName;

    internal string PathOf(int file) => Path.Combine(_folder, $"{file}");

    internal string SubjectOf(int file) => $"{verb}-{file}";

    /// <summary>A new version of a file, noted as begun.</summary>
    internal (int Version, byte[] Content) Begin(int file)
    {
        int version = (int)state.LastBegun(SubjectOf(file)) + 1;
        byte[] content = versionOf(file, version);
        state.Begin(SubjectOf(file), version);
        return (version, content);
    }

    /// <summary>
    /// Every file holds an allowed version, and nothing is beside them but what the documentation names, which is removed.
    /// </summary>
    internal void Check()
    {
        for (int file = 0; file < count; file++)
        {
            string path = PathOf(file);
            string subject = SubjectOf(file);
            byte[] content = File.Exists(path) ? File.ReadAllBytes(path) : [];
            long version = content.Length >= sizeof(int) ? BinaryPrimitives.ReadInt32LittleEndian(content) : -1;
            WrongStateException.Demand(
                File.Exists(path) ? state.Allows(subject, version) && content.AsSpan().SequenceEqual(versionOf(file, (int)version))
                    : state.LastDone(subject) < 0,
                $"{path}: {content.Length} bytes, version {version}; {state.LastDone(subject)} is done, "
                    + $"{state.LastBegun(subject)} begun.");
        }

        // What a kill between linkat(2) and rename(2) leaves, under the name that is documented.
        foreach (string path in Directory.GetFiles(_folder, "*", new EnumerationOptions { AttributesToSkip = 0 }))
        {
            if (!int.TryParse(Path.GetFileName(path), out _))
            {
                WrongStateException.Demand(
                    Path.GetFileName(path).StartsWith(".pipelines-file-", StringComparison.Ordinal), $"{path} was left behind.");
                File.Delete(path);
            }
        }
    }

    /// <summary>Content that begins with its version.</summary>
    internal static byte[] Make(int version, int length, long seed)
    {
        byte[] content = new byte[sizeof(int) + length];
        BinaryPrimitives.WriteInt32LittleEndian(content, version);
        Pattern.Fill(content.AsSpan(sizeof(int)), seed);
        return content;
    }
}
