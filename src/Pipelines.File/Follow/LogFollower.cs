using Pipelines.File.Follow;

namespace Pipelines.File;

/// <summary>
/// Reads the lines of a log as they are written, each once and in order, as <c>tail -F</c> does. The log may be renamed, replaced,
/// truncated, missing for a time, and rotated several times while the program does not run. A <see cref="LogFollowerOptions.Checkpoint"/>
/// lets a program continue where it has stopped.
/// </summary>
/// <remarks>
/// docs/following.md says what a follower cannot know. The follower finds a file again by its <see cref="FileIdentity"/> among the files
/// that match <see cref="LogFollowerOptions.RotatedNames"/>. On systems other than Linux and Windows, which have no identities, it reads
/// only the file that has the name of the log.
/// </remarks>
public sealed class LogFollower
{
    private readonly string _path;
    private readonly LogFollowerOptions _options;

    /// <summary>Creates a follower. It opens nothing yet.</summary>
    /// <param name="path">
    /// The path of the log, absolute or relative to the current directory at this moment. The file need not exist.
    /// </param>
    /// <param name="options">How to follow; <see langword="null"/> means the defaults.</param>
    /// <exception cref="ArgumentException">
    /// <paramref name="path"/> is empty or <see langword="null"/>, or an option is out of its range.
    /// </exception>
    public LogFollower(string path, LogFollowerOptions? options = null)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        _options = options ?? LogFollowerOptions.Default;
        _options.Validate();
        _path = Path.GetFullPath(path);
    }

    /// <summary>Returns the lines one after the other, and waits for more until it is canceled. The wait holds no thread.</summary>
    /// <remarks>Each call begins again, at <see cref="LogFollowerOptions.Checkpoint"/>. After warm-up a line allocates nothing.</remarks>
    /// <param name="cancellationToken">Ends the wait at once.</param>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <exception cref="UnauthorizedAccessException">You may not read the file, or the path is that of a folder.</exception>
    /// <exception cref="IOException">
    /// The file cannot be opened or read. After a rotation, the follower tries to open it for 20 intervals before it gives up.
    /// </exception>
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
                ReadResult result = await reader.ReadAsync(cancellationToken).ConfigureAwait(false);
                ReadOnlySequence<byte> rest = result.Buffer;
                end = LogEnd.None;
                if (rest.Length > held && !file.HoldsWhatWasRead(_path))
                {
                    // The file was truncated: the new bytes do not follow those that are held.
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

                while (end is LogEnd.Over or LogEnd.Cut && !rest.IsEmpty)
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
