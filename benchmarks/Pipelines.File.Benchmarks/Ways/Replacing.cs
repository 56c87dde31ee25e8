using System.Buffers;
using System.Globalization;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace FilePipelines.Benchmarks;

/// <summary>Every way to replace a file of 4 KiB; the first is the baseline. Linux.</summary>
internal static class Replacing
{
    private const int Length = 4096;
    private const int O_WRONLY = 1;
    private const int O_CLOEXEC = 0x80000;
    private const int AT_SYMLINK_FOLLOW = 0x400;
    private const int AT_FDCWD = -100;
    private static readonly byte[] s_content = new byte[Length];

    // open(2): O_TMPFILE contains O_DIRECTORY, whose number is not the same on every architecture.
    private static int Nameless => 0x400000
        | (System.Runtime.InteropServices.RuntimeInformation.ProcessArchitecture == System.Runtime.InteropServices.Architecture.Arm64
            ? 0x4000 : 0x10000);

    internal static IReadOnlyList<Grid> Grids(Scale scale) => !OperatingSystem.IsLinux() ? [] :
    [
        new(
            "replace", "Replacing a file of 4 KiB", "guarantee", 8, new PairedMeasurement(scale.MinRounds, 41, scale.Sample),
            "**Replacing**: `File.Move` keeps no mode and syncs no name; `CompleteAsync` calls on another thread.",
            folder =>
            [
                new Column("no sync", Of(folder.PathOf("written"), isDurable: false)),
                new Column("durable", Of(folder.PathOf("durable"), isDurable: true)),
            ]),
    ];

    private static IReadOnlyList<Candidate> Of(string path, bool isDurable)
    {
        FilePipeWriterOptions options =
            new() { Replace = true, FlushGuarantee = isDurable ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind };
        File.WriteAllBytes(path, s_content);
        return
        [
            new Candidate("the same system calls", () => new ValueTask<long>(ByHand(path, isDurable))),
            new Candidate("FilePipeWriter, Complete", () =>
            {
                FilePipeWriter writer = FilePipeWriter.Create(path, options);
                writer.Write(s_content);
                writer.Complete();
                return new ValueTask<long>(Length);
            }),
            new Candidate("FilePipeWriter, CompleteAsync", async () =>
            {
                FilePipeWriter writer = FilePipeWriter.Create(path, options);
                writer.Write(s_content);
                await writer.CompleteAsync();
                return Length;
            }),
            new Candidate("File.WriteAllBytes, File.Move", () =>
            {
                string temporary = path + ".new";
                File.WriteAllBytes(temporary, s_content);
                if (isDurable)
                {
                    using SafeFileHandle handle = File.OpenHandle(
                        temporary, FileMode.Open, FileAccess.ReadWrite);
                    RandomAccess.FlushToDisk(handle);
                }

                File.Move(temporary, path, overwrite: true);
                return new ValueTask<long>(Length);
            }),
        ];
    }

    private static unsafe long ByHand(string path, bool isDurable)
    {
        string folderPath = Path.GetDirectoryName(path)!;
        string temporary = string.Create(CultureInfo.InvariantCulture, $"{folderPath}/.by-hand-{Random.Shared.NextInt64():x16}");
        byte* status = stackalloc byte[256];
        Check(Libc.StatX(AT_FDCWD, path, 0x100, 0xB, status));
        uint mode = *(ushort*)(status + 28) & 0xFFFu;
        Check(Libc.Access(path, 2));
        int folder = isDurable ? Check(Libc.Open(folderPath, O_CLOEXEC, 0)) : -1;
        int file = Check(Libc.Open(folderPath, Nameless | O_WRONLY | O_CLOEXEC, 0x180));
        Check(Libc.FChMod(file, mode));
        using (SafeFileHandle handle = new(file, ownsHandle: false))
        {
            Libc.PWriteAll(handle, s_content, 0);
        }

        if (isDurable)
        {
            Check(Libc.FDataSync(file));
        }

        Check(Libc.LinkAt(
            AT_FDCWD, string.Create(CultureInfo.InvariantCulture, $"/proc/self/fd/{file}"), AT_FDCWD, temporary, AT_SYMLINK_FOLLOW));
        Check(Libc.Rename(temporary, path));
        if (isDurable)
        {
            Check(Libc.FSync(folder));
            Check(Libc.Close(folder));
        }

        Check(Libc.Close(file));
        return Length;
    }

    private static int Check(int answer)
        => answer >= 0 ? answer : throw new IOException(System.Runtime.InteropServices.Marshal.GetLastPInvokeErrorMessage());
}
