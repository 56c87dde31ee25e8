using System.Buffers;
using System.Globalization;

namespace FilePipelines.Devices.Tests;

/// <summary>New files, one after the other, in two folders at once: each whole under its name, or written under it.</summary>
internal sealed class NewFiles(FlushGuarantee guarantee, bool replaces) : Workload
{
    private const int Folders = 2;
    private const int FilesEach = 60;

    internal override Task RunAsync(string folder, Acknowledge acknowledge, Random random)
        => Task.WhenAll(Enumerable.Range(0, Folders).Select(number => Task.Run(async () =>
        {
            // The folders are the caller's, and so are their names.
            string below = number == 0 ? folder : Directory.CreateDirectory(Path.Combine(folder, "below")).FullName;
            for (int i = 0; i < FilesEach; i++)
            {
                int file = (i * Folders) + number;
                FilePipeWriter writer = FilePipeWriter.Create(
                    Path.Combine(below, $"{file}"),
                    new()
                    {
                        Mode = replaces && i % 2 == 0 ? FileMode.CreateNew : FileMode.Create,
                        Replace = replaces,
                        FlushGuarantee = guarantee,
                    });
                writer.Write(Pattern.Version(file));
                if (i % 3 == 0)
                {
                    await writer.FlushAsync();
                    if (!replaces)
                    {
                        acknowledge($"{file}", 1);
                    }
                }

                await writer.CompleteAsync();
                acknowledge($"{file}", 1);
            }
        })));

    internal override Task CheckAsync(string folder, IReadOnlyDictionary<string, long> promises)
    {
        foreach (string subject in promises.Keys)
        {
            int file = int.Parse(subject, CultureInfo.InvariantCulture);

            // The folder's own name is not the library's: it is there where the file system has it.
            string below = file % Folders == 0 ? folder : Path.Combine(folder, "below");
            byte[] content = Read(Path.Combine(below, subject));
            Demand(
                content.AsSpan().SequenceEqual(Pattern.Version(file)),
                $"File {subject} was completed; {content.Length} bytes of it are there, or others.");
        }

        // With Replace there is no other file than whole ones, whoever was told.
        foreach (string path in replaces ? Directory.GetFiles(folder) : [])
        {
            if (int.TryParse(Path.GetFileName(path), CultureInfo.InvariantCulture, out int file))
            {
                Demand(Read(path).AsSpan().SequenceEqual(Pattern.Version(file)), $"File {file} is there, and not whole.");
            }
        }

        return Task.CompletedTask;
    }
}
