using System.Buffers;
using System.Text;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace TailSample;

/// <summary>Follows the files, writes their lines to standard output, and saves after each batch how far they are there.</summary>
/// <remarks>
/// An output that is a file is cut back to what the checkpoint knows of, so that a program that was killed goes on with every line once; a
/// pipe gets the last batch again.
/// </remarks>
internal static class Tailing
{
    private const int MaxLines = 1000;
    private const int MaxBytes = 256 * 1024;

    // Where the position of the output is kept, beside those of the logs.
    private const string OutputPath = "/dev/stdout";

    internal static async Task RunAsync(Settings settings, CancellationToken cancellationToken)
    {
        CheckpointFile? position = settings.Checkpoint is null ? null
            : await CheckpointFile.OpenAsync(settings.Checkpoint, cancellationToken: CancellationToken.None);
        FileIdentity output = CutOutput(position);
        FilePipeWriter writer = FilePipeWriter.OpenStandardOutput();
        await using (writer)
        {
            SetOutput();
            await BeginAsync(settings, position);
            LogFollower follower = new(
                settings.Names, new LogFollowerOptions { Checkpoints = position?.Checkpoints, LastLines = settings.Lines });
            try
            {
                await foreach (FollowedBatch batch in follower.ReadBatchesAsync(MaxLines, MaxBytes, TimeSpan.Zero, cancellationToken))
                {
                    await WriteAsync(batch, settings, writer);
                    SetOutput();
                    await (position?.SaveAsync(batch, CancellationToken.None) ?? Task.CompletedTask);
                }
            }
            catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
            {
                // Nothing is wrong.
            }
        }

        void SetOutput()
        {
            if (output != default)
            {
                position!.Set(OutputPath, new FileCheckpoint(output, writer.Position));
            }
        }
    }

    /// <summary>Cuts an output that is a file back to what was saved of it. Returns its identity, if it is one.</summary>
    private static FileIdentity CutOutput(CheckpointFile? position)
    {
        if (position is null || !OperatingSystem.IsLinux() || !FileIdentity.TryGet(OutputPath, out FileIdentity identity))
        {
            return default;
        }

        using SafeFileHandle output = new(1, ownsHandle: false);
        if (position.Checkpoints.TryGetValue(OutputPath, out FileCheckpoint known) && known.Identity == identity
            && known.Offset < RandomAccess.GetLength(output))
        {
            RandomAccess.SetLength(output, known.Offset);
        }

        return identity;
    }

    /// <summary>
    /// Says what is waited for. A file is known from now on, also if it is rotated before its first line is in the output.
    /// </summary>
    private static async Task BeginAsync(Settings settings, CheckpointFile? position)
    {
        foreach (string given in settings.Names)
        {
            string folder = Path.GetDirectoryName(Path.GetFullPath(given)) ?? "/";
            bool isThere = Settings.IsPattern(given)
                ? Directory.Exists(folder) && Directory.EnumerateFiles(folder, Path.GetFileName(given)).Any()
                : Path.Exists(given);
            if (!isThere)
            {
                await Console.Error.WriteLineAsync($"Tail: waiting for '{given}'");
            }
            else if (position is not null && settings.Lines is null && !Settings.IsPattern(given)
                && !position.Checkpoints.ContainsKey(Path.GetFullPath(given)) && FileIdentity.TryGet(given, out FileIdentity identity))
            {
                position.Set(given, new FileCheckpoint(identity, 0));
            }
        }

        await (position?.SaveAsync() ?? Task.CompletedTask);
    }

    private static async Task WriteAsync(FollowedBatch batch, Settings settings, FilePipeWriter writer)
    {
        byte[] prefix = settings.HasPrefix ? Encoding.UTF8.GetBytes($"{settings.NameOf(batch.Path)}: ") : [];
        foreach (FollowedLine line in batch.Lines)
        {
            if (line.IsAfterGap)
            {
                await Console.Error.WriteLineAsync($"Tail: lines of '{batch.Path}' may be missing: a file of it was cut, or is gone");
            }

            writer.Write(prefix);
            writer.Write(line.Bytes.Span);
            writer.Write("\n"u8);
        }

        // What the checkpoint says is in the output has to be there.
        await writer.FlushAsync(FlushGuarantee.Written);
    }
}
