using System.Buffers;
using System.Buffers.Binary;
using System.Globalization;

namespace FilePipelines.Devices.Tests;

/// <summary>Files that are replaced again and again, several at once.</summary>
internal sealed class ReplacedFiles(FlushGuarantee guarantee) : Workload
{
    private const int Files = 4;
    private const int Versions = 40;

    internal override Task RunAsync(string folder, Acknowledge acknowledge, Random random)
        => Task.WhenAll(Enumerable.Range(0, Files).Select(file => Task.Run(async () =>
        {
            string path = Path.Combine(folder, $"{file}");
            for (int version = 0; version < Versions; version++)
            {
                FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true, FlushGuarantee = guarantee });
                writer.Write(VersionOf(file, version));
                await writer.FlushAsync(FlushGuarantee.Written);
                await writer.CompleteAsync();
                acknowledge($"{file}", version);
            }
        })));

    internal override Task CheckAsync(string folder, IReadOnlyDictionary<string, long> promises)
    {
        for (int file = 0; file < Files; file++)
        {
            string path = Path.Combine(folder, $"{file}");
            long promised = promises.GetValueOrDefault(file.ToString(CultureInfo.InvariantCulture), -1);
            if (!File.Exists(path))
            {
                Demand(promised < 0, $"{file} had version {promised}, and is gone.");
                continue;
            }

            byte[] content = File.ReadAllBytes(path);
            int version = content.Length < sizeof(int) ? -1 : BinaryPrimitives.ReadInt32LittleEndian(content);
            Demand(
                version >= Math.Max(0, promised) && version < Versions && content.AsSpan().SequenceEqual(VersionOf(file, version)),
                $"{file} had version {promised}; the {content.Length} bytes that are there are neither that nor a later one.");
        }

        return Task.CompletedTask;
    }

    private static byte[] VersionOf(int file, int version)
    {
        byte[] content = Pattern.Version((version * Files) + file);
        Array.Resize(ref content, content.Length + sizeof(int));
        BinaryPrimitives.WriteInt32LittleEndian(content, version);
        return content;
    }
}
