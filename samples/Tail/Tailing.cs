using System.Buffers;
using System.Collections.Concurrent;
using System.Text;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace TailSample;

/// <summary>Follows the files, writes their lines to standard output, and saves from time to time how far they are there.</summary>
/// <remarks>
/// An output that is a file is cut back to what the checkpoint knows of, so that a program that was killed goes on with every line once; a
/// pipe gets the last lines again.
/// </remarks>
internal sealed class Tailing : IDisposable
{
    private static readonly TimeSpan s_interval = TimeSpan.FromMilliseconds(200);

    private readonly Settings _settings;
    private readonly ConcurrentDictionary<string, FileCheckpoint> _files;
    private readonly FileIdentity _outputIdentity;
    private readonly FilePipeWriter _output;
    private readonly SemaphoreSlim _gate = new(1);
    private readonly Dictionary<string, Task> _followed = [];
    private bool _isSaved;

    private Tailing(Settings settings, State state)
    {
        (_settings, _files) = (settings, state.Files);
        if (OperatingSystem.IsLinux() && settings.Checkpoint is not null && FileIdentity.TryGet("/dev/stdout", out _outputIdentity))
        {
            using SafeFileHandle output = new(1, ownsHandle: false);
            if (state.Output is { } known && known.Identity == _outputIdentity && known.Offset < RandomAccess.GetLength(output))
            {
                RandomAccess.SetLength(output, known.Offset);
            }
        }

        _output = FilePipeWriter.OpenStandardOutput();
    }

    internal static async Task RunAsync(Settings settings, CancellationToken cancellationToken)
    {
        using Tailing tailing = new(
            settings, settings.Checkpoint is null ? new State(new(), null) : await State.LoadAsync(settings.Checkpoint));
        using CancellationTokenSource ended = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        try
        {
            for (bool isStart = true; ; isStart = false)
            {
                tailing.FollowNames(isStart, ended.Token);
                await tailing.SaveAsync();
                await await Task.WhenAny([Task.Delay(s_interval, ended.Token), .. tailing._followed.Values]);
            }
        }
        catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
        {
            // Nothing is wrong.
        }
        finally
        {
            await ended.CancelAsync();
            await ((Task)Task.WhenAll(tailing._followed.Values)).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
            await tailing.SaveAsync();
            await tailing._output.CompleteAsync();
        }
    }

    public void Dispose() => _gate.Dispose();

    private void FollowNames(bool isStart, CancellationToken cancellationToken)
    {
        foreach (string given in _settings.Names)
        {
            string shownFolder = Path.GetDirectoryName(given)!;
            string folder = Path.GetFullPath(Path.Combine(".", shownFolder));
            bool isPattern = Path.GetFileName(given.AsSpan()).ContainsAny('*', '?');
            string[] names = !isPattern ? [given] : Directory.Exists(folder) ? Directory.GetFiles(folder, Path.GetFileName(given)) : [];
            if (isStart && !names.Any(Path.Exists))
            {
                Console.Error.WriteLine($"Tail: waiting for '{given}'");
            }

            foreach (string path in names.Select(Path.GetFullPath).Order(StringComparer.Ordinal)
                .Where(path => !_followed.Keys.Any(known => isPattern ? IsSameLog(known, path) : known == path)))
            {
                string prefix = _settings.HasPrefix ? (isPattern ? Path.Combine(shownFolder, Path.GetFileName(path)) : given) + ": " : "";
                FileCheckpoint? checkpoint = _files.TryGetValue(path, out FileCheckpoint known) ? known : null;
                if (checkpoint is null && _settings.Lines is null && FileIdentity.TryGet(path, out FileIdentity identity))
                {
                    // Known from now on, also where it is rotated before its first line is in the output.
                    checkpoint = _files[path] = new FileCheckpoint(identity, 0);
                }

                LogFollowerOptions options = new() { Checkpoint = checkpoint, LastLines = isStart ? _settings.Lines : null };
                _followed[path] = Task.Run(() => FollowAsync(path, prefix, options, cancellationToken), CancellationToken.None);
            }
        }
    }

    /// <summary>The same name, or what that log is renamed to when it is rotated.</summary>
    private static bool IsSameLog(string known, string path)
        => path.StartsWith(known, StringComparison.Ordinal) && !path.AsSpan(known.Length).ContainsAnyExceptInRange('-', '9');

    private async Task FollowAsync(string path, string prefix, LogFollowerOptions options, CancellationToken cancellationToken)
    {
        byte[] prefixBytes = Encoding.UTF8.GetBytes(prefix);
        await foreach (FollowedLine line in new LogFollower(path, options).ReadLinesAsync(cancellationToken))
        {
            if (line.IsAfterGap)
            {
                await Console.Error.WriteLineAsync($"Tail: lines of '{path}' may be missing: a file of it was cut, or is gone");
            }

            await _gate.WaitAsync(CancellationToken.None);
            try
            {
                _output.Write(prefixBytes);
                _output.Write(line.Bytes.Span);
                _output.Write("\n"u8);
                await _output.FlushAsync(CancellationToken.None);
                _files[path] = line.Checkpoint;
                _isSaved = false;
            }
            finally
            {
                _gate.Release();
            }
        }
    }

    private async Task SaveAsync()
    {
        await _gate.WaitAsync();
        try
        {
            if (_settings.Checkpoint is not null && !_isSaved)
            {
                // The lines first: what the checkpoint says is in the output is there.
                await _output.FlushAsync(FlushGuarantee.Written);
                FileCheckpoint? output = _outputIdentity == default ? null : new FileCheckpoint(_outputIdentity, _output.Position);
                await new State(_files, output).SaveAsync(_settings.Checkpoint);
                _isSaved = true;
            }
        }
        finally
        {
            _gate.Release();
        }
    }
}
