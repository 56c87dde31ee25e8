using System.Buffers;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using Pipelines.File.Follow;

namespace Pipelines.File;

/// <summary>
/// Gives the lines of a log as they come, each once and in order, over rotations: as <c>tail -F</c> does, and from where the program was when it ended. The file may be renamed, replaced,
/// cut, missing at first or in between, and rotated several times while nobody looks.
/// </summary>
/// <remarks>
/// docs/following.md says what a follower cannot know. A file is found again by its <see cref="FileIdentity"/> among the names of <see cref="LogFollowerOptions.RotatedNames"/>; on systems other than
/// Linux and Windows, which do not tell identities, only the file that has the name is read.
/// </remarks>
public sealed class LogFollower
{
    private readonly string _path;
    private readonly LogFollowerOptions _options;

    /// <summary>Makes a follower, which opens nothing yet.</summary>
    /// <param name="path">The log: absolute, or relative to the current directory of this moment. There need not be one.</param>
    /// <param name="options">How to follow; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentException"><paramref name="path"/> is empty or <see langword="null"/>, or an option cannot be used.</exception>
    public LogFollower(string path, LogFollowerOptions? options = null)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        _options = options ?? LogFollowerOptions.Default;
        _options.Validate();
        _path = Path.GetFullPath(path);
    }

    /// <summary>
    /// Gives one line after the other, and waits for more, without a thread, until it is canceled. Each call begins anew, at <see cref="LogFollowerOptions.Checkpoint"/>. After warm-up
    /// nothing is allocated for a line.
    /// </summary>
    /// <param name="cancellationToken">Ends the wait at once.</param>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <exception cref="UnauthorizedAccessException">The caller may not read the file, or it is a directory.</exception>
    /// <exception cref="IOException">The file cannot be opened or read. After a rotation opening is tried again for 20 intervals before.</exception>
    public async IAsyncEnumerable<FollowedLine> ReadLinesAsync([EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        LogFiles files = new(_path, _options);
        while (true)
        {
            LogFile file = await files.OpenNextAsync(cancellationToken).ConfigureAwait(false);
            FilePipeReader reader = file.Reader;
            await using ConfiguredAsyncDisposable disposing = reader.ConfigureAwait(false);
            LogEnd end;
            long held = 0;
            do
            {
                ValueTask<ReadResult> reading = reader.ReadAsync(cancellationToken);
                bool hasWaited = !reading.IsCompleted;
                ReadResult result = await reading.ConfigureAwait(false);
                ReadOnlySequence<byte> rest = result.Buffer;
                end = LogEnd.None;
                if (hasWaited && rest.Length > held && !file.HoldsWhatWasRead(_path))
                {
                    // What has come is not what follows the bytes in front of it.
                    rest = rest.Slice(0, held);
                    files.OnCut();
                    end = LogEnd.Cut;
                }
                else
                {
                    if (rest.Length > held)
                    {
                        file.OnGrown();
                    }

                    while (file.TryTakeLine(ref rest, out FollowedLine line))
                    {
                        yield return line;
                    }

                    file.Keep(result.Buffer, rest);
                    if (result.IsCompleted)
                    {
                        end = await files.LookAtEndAsync(file, cancellationToken).ConfigureAwait(false);
                    }
                }

                if (end is LogEnd.Over or LogEnd.Cut && !rest.IsEmpty)
                {
                    yield return file.TakeTornLine(ref rest);
                }

                held = rest.Length;
                reader.AdvanceTo(rest.Start, rest.End);
            }
            while (end == LogEnd.None);
            files.OnLeft(file, end);
        }
    }
}
