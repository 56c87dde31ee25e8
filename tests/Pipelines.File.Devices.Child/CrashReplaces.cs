using System.Buffers;
using System.Buffers.Binary;

namespace FileDevicesChild;

/// <summary>Files that are replaced: old or new, never half, and never what was given up.</summary>
internal sealed class CrashReplaces(string folder, ExpectedState state) : ICrashFeature
{
    private const int Files = 4;

    private readonly string _folder = Directory.CreateDirectory(Path.Combine(folder, "replaced")).FullName;

    public Task CheckAsync(bool isLast)
    {
        for (int file = 0; file < Files; file++)
        {
            string path = Path.Combine(_folder, $"{file}");
            byte[] content = File.Exists(path) ? File.ReadAllBytes(path) : [];
            long version = content.Length >= sizeof(int) ? BinaryPrimitives.ReadInt32LittleEndian(content) : -1;
            WrongStateException.Demand(
                File.Exists(path)
                    ? state.Allows($"replace-{file}", version) && content.AsSpan().SequenceEqual(VersionOf(file, (int)version))
                    : state.LastDone($"replace-{file}") < 0,
                $"replaced/{file}: {content.Length} bytes, version {version}; {state.LastDone($"replace-{file}")} is done, "
                    + $"{state.LastBegun($"replace-{file}")} begun.");
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

        return Task.CompletedTask;
    }

    public Task RunAsync(Random random)
        => Task.WhenAny(Enumerable.Range(0, 2).Select(_ => new Random(random.Next())).Select((mine, half) => Task.Run(async () =>
        {
            while (true)
            {
                // One task a file, as the order of two replacements at once is nobody's promise.
                int file = (mine.Next(Files / 2) * 2) + half;
                string subject = $"replace-{file}";
                int version = (int)state.LastBegun(subject) + 1;
                byte[] content = VersionOf(file, version);
                state.Begin(subject, version);
                FilePipeWriter writer = FilePipeWriter.Create(
                    Path.Combine(_folder, $"{file}"),
                    new() { Replace = true, FlushGuarantee = mine.Next(3) == 0 ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind });
                writer.Write(content.AsSpan(0, content.Length / 2));
                await writer.FlushAsync();
                writer.Write(content.AsSpan(content.Length / 2));
                switch (mine.Next(8))
                {
                    case 0:
                        writer.Abort();
                        await writer.CompleteAsync();
                        state.Drop(subject, version);
                        break;
                    case 1:
                        await writer.DisposeAsync();
                        state.Drop(subject, version);
                        break;
                    default:
                        await writer.CompleteAsync();
                        state.Done(subject, version);
                        break;
                }
            }
        }))).Unwrap();

    private static byte[] VersionOf(int file, int version)
    {
        byte[] content = new byte[sizeof(int) + (int)(((version * 7919L) + file) % 100_000)];
        BinaryPrimitives.WriteInt32LittleEndian(content, version);
        Pattern.Fill(content.AsSpan(sizeof(int)), (version * 31L) + file);
        return content;
    }
}
