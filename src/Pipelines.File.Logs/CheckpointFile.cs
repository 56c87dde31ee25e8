namespace Pipelines.File;

/// <summary>
/// Keeps the checkpoints of any number of logs in one file. Saving replaces the file, so it holds the old checkpoints or the new ones,
/// whenever the program is killed. Used by one caller at a time.
/// </summary>
/// <example>
/// <code>
/// using Pipelines.File;
///
/// CheckpointFile position = await CheckpointFile.OpenAsync("position");
/// LogFollower follower = new("/var/log/app/*.log", new LogFollowerOptions { Checkpoints = position.Checkpoints });
/// await foreach (FollowedBatch batch in follower.ReadBatchesAsync(1000, 1024 * 1024, TimeSpan.FromSeconds(1)))
/// {
///     Console.WriteLine($"{batch.Lines.Count} lines of {batch.Path}");
///     await position.SaveAsync(batch);
/// }
/// </code>
/// </example>
public sealed class CheckpointFile
{
    private const string FirstLine = "Pipelines.File checkpoints 1";

    private readonly Dictionary<string, FileCheckpoint> _checkpoints = [];
    private readonly string _path;
    private readonly bool _isDurable;

    private CheckpointFile(string path, bool isDurable) => (_path, _isDurable) = (path, isDurable);

    /// <summary>The checkpoints, by the full path of the log: for <see cref="LogFollowerOptions.Checkpoints"/>.</summary>
    public IReadOnlyDictionary<string, FileCheckpoint> Checkpoints => _checkpoints;

    /// <summary>
    /// Reads the file. There are no checkpoints if it does not exist, or if a power failure has left it empty or full of zeros. A line that
    /// is damaged is ignored.
    /// </summary>
    /// <param name="path">The path of the file. Its folder must exist.</param>
    /// <param name="durable">
    /// Whether what was saved is there after a power failure, too. Saving then takes a sync of the file and of its folder, some
    /// milliseconds. Without, the file may then be lost, and logs are read again.
    /// </param>
    /// <param name="cancellationToken">Ends the wait at once.</param>
    /// <exception cref="InvalidDataException">The file holds something else: it is not to be overwritten.</exception>
    /// <exception cref="IOException">The file cannot be read.</exception>
    /// <exception cref="UnauthorizedAccessException">You may not read the file.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public static async Task<CheckpointFile> OpenAsync(string path, bool durable = false, CancellationToken cancellationToken = default)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        CheckpointFile file = new(Path.GetFullPath(path), durable);
        string[] lines;
        try
        {
            lines = (await System.IO.File.ReadAllTextAsync(file._path, cancellationToken).ConfigureAwait(false)).Trim('\0').Split('\n');
        }
        catch (FileNotFoundException)
        {
            return file;
        }

        if (lines is not ([""] or [FirstLine, ..]))
        {
            throw new InvalidDataException($"'{file._path}' holds no checkpoints.");
        }

        foreach (string line in lines.Skip(1))
        {
            int separator = line.IndexOf(' ', StringComparison.Ordinal);
            if (separator > 0 && FileCheckpoint.TryParse(line[..separator], out FileCheckpoint checkpoint))
            {
                file._checkpoints[Uri.UnescapeDataString(line[(separator + 1)..])] = checkpoint;
            }
        }

        return file;
    }

    /// <summary>Sets the checkpoint of a log. <see cref="SaveAsync(CancellationToken)"/> saves it.</summary>
    /// <param name="path">The path of the log.</param>
    /// <param name="checkpoint">The position after the last line that was used.</param>
    /// <exception cref="ArgumentException">
    /// <paramref name="path"/> is empty or <see langword="null"/>, or <paramref name="checkpoint"/> is <see langword="default"/>.
    /// </exception>
    public void Set(string path, FileCheckpoint checkpoint)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        _checkpoints[Path.GetFullPath(path)] = checkpoint != default ? checkpoint
            : throw new ArgumentException("The checkpoint is not set: no line was used yet.", nameof(checkpoint));
    }

    /// <summary>Forgets a log that does not exist any more. Returns whether it was known.</summary>
    /// <param name="path">The path of the log.</param>
    public bool Remove(string path)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        return _checkpoints.Remove(Path.GetFullPath(path));
    }

    /// <summary>
    /// Sets the checkpoint behind a batch, forgets <see cref="FollowedBatch.GoneLogs"/>, and saves the file. Call it after you have used
    /// the batch.
    /// </summary>
    /// <param name="batch">The batch.</param>
    /// <param name="cancellationToken">Gives up, and leaves the old file.</param>
    /// <inheritdoc cref="SaveAsync(CancellationToken)" path="/exception"/>
    public Task SaveAsync(FollowedBatch batch, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(batch);
        foreach (string log in batch.GoneLogs)
        {
            _checkpoints.Remove(log);
        }

        _checkpoints[batch.Path] = batch.Checkpoint;
        return SaveAsync(cancellationToken);
    }

    /// <summary>Saves the file.</summary>
    /// <param name="cancellationToken">Gives up, and leaves the old file.</param>
    /// <exception cref="IOException">The file cannot be written.</exception>
    /// <exception cref="UnauthorizedAccessException">You may not write it.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public async Task SaveAsync(CancellationToken cancellationToken = default)
    {
        cancellationToken.ThrowIfCancellationRequested();
        FilePipeWriter writer = FilePipeWriter.Create(_path, new FilePipeWriterOptions
        {
            Replace = true,
            FlushGuarantee = _isDurable ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind,
        });
        await using ConfiguredAsyncDisposable disposing = writer.ConfigureAwait(false);
        Encoding.UTF8.GetBytes($"{FirstLine}\n", writer);
        foreach ((string path, FileCheckpoint checkpoint) in _checkpoints)
        {
            // A name may hold any character, also a line feed.
            Encoding.UTF8.GetBytes($"{checkpoint} {Uri.EscapeDataString(path)}\n", writer);
        }

        await writer.CompleteAsync().ConfigureAwait(false);
    }
}
