using System.Buffers;
using System.Runtime.CompilerServices;
using System.Text;

namespace Pipelines.File;

/// <summary>
/// Processes the records of a journal, and remembers how far it has come, in a file beside the journal: after a restart it goes on there.
/// Retention and trimming do not pass a consumer unless that is asked for. One at a time may be open of each name, in the process that
/// writes the journal (<see cref="Journal.OpenConsumerAsync"/>) or in another one (<see cref="OpenAsync"/>).
/// </summary>
/// <remarks>
/// A record is processed at least once: if the process ends between the work and <see cref="CommitAsync"/>, it comes again. To process each
/// once, have what the work writes keep the record's sequence number, too, and leave out what is there already.
/// </remarks>
/// <example>
/// <code>
/// using Pipelines.File;
///
/// await using Journal journal = await Journal.OpenAsync("orders");
/// await journal.AppendAsync("an order"u8.ToArray());
/// await using JournalConsumer mails = await journal.OpenConsumerAsync("mails");
/// await foreach (JournalConsumerBatch batch in mails.ReadBatchesAsync())
/// {
///     foreach (JournalRecordCopy record in batch)
///     {
///         await Console.Out.WriteLineAsync($"{record.Sequence}: {record.Memory.Length} bytes");
///     }
///
///     await mails.CommitAsync(batch.NextSequence);
/// }
/// </code>
/// </example>
public sealed class JournalConsumer : IAsyncDisposable, IDisposable
{
    private const string Extension = ".position";
    private const string LockExtension = ".lock";
    private const int MostNameLength = 100;
    private const int MostTries = 10;

    private static readonly SearchValues<char> s_nameChars = SearchValues.Create(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.");

    private readonly string _folder;
    private readonly string _path;
    private readonly FileLock _fileLock;
    private readonly Journal? _journal;
    private readonly JournalConsumerOptions _options;

    // Guarded by the lock: where epochs begin among the records that were read, and how far they were read.
    private readonly Lock _gate = new();
    private readonly List<(long First, long Epoch)> _epochs = [];
    private long _read;
    private JournalPosition _position;

    // One commit at a time.
    private readonly SemaphoreSlim _committing = new(1, 1);
    private bool _isClosed;

    private JournalConsumer(string folder, string name, FileLock fileLock, Journal? journal, JournalConsumerOptions options)
    {
        _folder = folder;
        _path = PathOf(folder, name);
        _fileLock = fileLock;
        _journal = journal;
        _options = options;
        Name = name;
    }

    /// <summary>The consumer's name.</summary>
    public string Name { get; }

    /// <summary>The place behind the last record that is committed as processed.</summary>
    public JournalPosition Position
    {
        get
        {
            lock (_gate)
            {
                return _position;
            }
        }
    }

    /// <summary>
    /// How many records the journal has that are not committed as processed. Of a consumer by folder it reads the end of the journal's
    /// newest file each time, which may wait for the device.
    /// </summary>
    /// <exception cref="IOException">The folder cannot be read.</exception>
    public long Behind => Math.Max(0, End() - Position.Sequence);

    /// <summary>Opens a consumer of the journal in a folder, which another process may write. A name that is new is registered.</summary>
    /// <param name="folder">The journal's folder.</param>
    /// <param name="name">1 to 100 letters and digits of ASCII, '-', '_' and '.', which is not the first one.</param>
    /// <param name="options">How; <see langword="null"/> means the defaults.</param>
    /// <param name="cancellationToken">Ends the opening.</param>
    /// <exception cref="ArgumentException">The name is not permitted.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder, or no journal in it.</exception>
    /// <exception cref="JournalChangedException">
    /// The journal does not have what was processed: it was repaired, or is another one. Check what was done, then
    /// <see cref="Remove"/> the consumer and open it again.
    /// </exception>
    /// <exception cref="JournalRecordsRemovedException">
    /// Records were removed before they were processed. That may come of a segment that another process was removing when the consumer was
    /// registered: <see cref="Remove"/> it and open it again.
    /// </exception>
    /// <exception cref="InvalidJournalException">The journal, or the file with the position, is damaged.</exception>
    /// <exception cref="IOException">
    /// A consumer of that name is open; the file system ignores case, and another consumer's name differs in that alone; or a file cannot
    /// be read or written.
    /// </exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public static ValueTask<JournalConsumer> OpenAsync(
        string folder, string name, JournalConsumerOptions? options = null, CancellationToken cancellationToken = default)
    {
        ArgumentException.ThrowIfNullOrEmpty(folder);
        return OpenOfAsync(Path.GetFullPath(folder), name, null, options, cancellationToken);
    }

    internal static ValueTask<JournalConsumer> OpenOfAsync(
        string folder, string name, Journal? journal, JournalConsumerOptions? options, CancellationToken cancellationToken)
    {
        ThrowIfNoName(name);
        JournalConsumerOptions copy = options is null ? new() : options with { };
        return new ValueTask<JournalConsumer>(
            Task.Run(() => OpenAtAsync(folder, name, journal, copy, cancellationToken), cancellationToken));
    }

    /// <summary>The names of the consumers that are registered in a folder, and their places.</summary>
    /// <param name="folder">The journal's folder.</param>
    /// <exception cref="InvalidJournalException">A file with a position is damaged.</exception>
    /// <exception cref="IOException">The folder cannot be read.</exception>
    public static IReadOnlyDictionary<string, JournalPosition> Registered(string folder)
    {
        ArgumentException.ThrowIfNullOrEmpty(folder);
        folder = Path.GetFullPath(folder);
        SortedDictionary<string, JournalPosition> all = new(StringComparer.Ordinal);
        string consumers = Path.Combine(folder, JournalFormat.ConsumersName);
        if (Directory.Exists(consumers))
        {
            // By their locks, too: a listing of Btrfs may miss a name that a commit replaces meanwhile.
            foreach (string name in Directory.GetFiles(consumers)
                .Where(static path => Path.GetExtension(path) is Extension or LockExtension)
                .Select(Path.GetFileNameWithoutExtension).Distinct()!)
            {
                if (Read(PathOf(folder, name)) is { } position)
                {
                    all.Add(name, position);
                }
            }
        }

        return all;
    }

    /// <summary>Removes a consumer: it keeps no records any more, and one of that name begins anew.</summary>
    /// <param name="folder">The journal's folder.</param>
    /// <param name="name">The consumer's name. Nothing is done if there is none.</param>
    /// <exception cref="ArgumentException">The name is not permitted.</exception>
    /// <exception cref="IOException">
    /// The consumer is open, or its file cannot be removed; or the file system ignores case, and the name differs in that from the
    /// consumer's.
    /// </exception>
    public static void Remove(string folder, string name)
    {
        ArgumentException.ThrowIfNullOrEmpty(folder);
        ThrowIfNoName(name);
        string path = PathOf(Path.GetFullPath(folder), name);
        if (!System.IO.File.Exists(path))
        {
            return;
        }

        ThrowIfAnothers(path, name);
        using FileLock fileLock = FileLock.TryAcquire(LockOf(path)) ?? throw new IOException(IsOpen(name, path));
        System.IO.File.Delete(path);
        FileSync.FlushFolder(Path.GetDirectoryName(path)!);
    }

    /// <summary>
    /// The number of the first record of a journal that a consumer has not processed; <see cref="long.MaxValue"/> if there is no consumer.
    /// </summary>
    internal static long Least(string folder, Guid id)
    {
        long least = long.MaxValue;
        foreach (JournalPosition position in Registered(folder).Values)
        {
            least = position.Id == id ? Math.Min(least, position.Sequence) : least;
        }

        return least;
    }

    /// <summary>Reads the records that are not committed as processed, in order.</summary>
    /// <param name="follow">Whether to wait at the end for more, without a thread; by folder without an end.</param>
    /// <param name="cancellationToken">Ends the wait.</param>
    /// <exception cref="JournalChangedException">The journal was repaired, or made anew, and does not have what was read.</exception>
    /// <exception cref="JournalRecordsRemovedException">Records were removed before they were read.</exception>
    /// <exception cref="InvalidJournalException">A record is damaged.</exception>
    /// <exception cref="IOException">A file cannot be read, or the journal has failed.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public async IAsyncEnumerable<JournalConsumerBatch> ReadBatchesAsync(
        bool follow = false, [EnumeratorCancellation] CancellationToken cancellationToken = default)
    {
        JournalPosition from = Position;
        await foreach (JournalBatch batch in JournalCursor.ReadAsync(Source(), from.Sequence, from, follow, cancellationToken)
            .ConfigureAwait(false))
        {
            lock (_gate)
            {
                // What was read before may be read again.
                int known = _epochs.FindLastIndex(epoch => epoch.First <= batch.FirstSequence);
                if (known < 0 || _epochs[known].Epoch != batch.Position.Epoch)
                {
                    _epochs.RemoveRange(known + 1, _epochs.Count - known - 1);
                    _epochs.Add((batch.FirstSequence, batch.Position.Epoch));
                }

                _read = Math.Max(_read, batch.NextSequence);
            }

            yield return new JournalConsumerBatch(batch);
        }
    }

    /// <summary>
    /// Remembers that all records before a number are processed. It is on the device when this completes, and takes two or three syncs:
    /// commit batches, not records.
    /// </summary>
    /// <param name="sequence">
    /// The number of the first record that is not processed: <see cref="JournalConsumerBatch.NextSequence"/>, or the last one's + 1.
    /// </param>
    /// <param name="cancellationToken">Ends it before it has begun.</param>
    /// <exception cref="ArgumentOutOfRangeException">The number is less than what is committed, or was not read yet.</exception>
    /// <exception cref="IOException">The file cannot be written. The position is the old one or the new one.</exception>
    /// <exception cref="ObjectDisposedException">The consumer is closed.</exception>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    public async ValueTask CommitAsync(long sequence, CancellationToken cancellationToken = default)
    {
        await _committing.WaitAsync(cancellationToken).ConfigureAwait(false);
        try
        {
            ObjectDisposedException.ThrowIf(_isClosed, this);
            JournalPosition next;
            lock (_gate)
            {
                ArgumentOutOfRangeException.ThrowIfLessThan(sequence, _position.Sequence);
                ArgumentOutOfRangeException.ThrowIfGreaterThan(sequence, _read);
                if (sequence == _position.Sequence)
                {
                    return;
                }

                next = _position with { Sequence = sequence, Epoch = _epochs.Last(epoch => epoch.First < sequence).Epoch };
            }

            if (_journal is not null)
            {
                // What is processed must not be lost: with a weaker guarantee it may not be on the device yet.
                await _journal.SyncAsync().ConfigureAwait(false);
            }

            if (!_fileLock.IsInPlace)
            {
                throw new IOException(
                    $"The consumer's lock was removed or replaced, and another process may use it. '{_fileLock.Path}'");
            }

            await WriteAsync(_path, next, cancellationToken).ConfigureAwait(false);
            lock (_gate)
            {
                _position = next;
            }
        }
        finally
        {
            _committing.Release();
        }
    }

    /// <summary>Closes the consumer when a commit that is under way has ended. It stays registered.</summary>
    public async ValueTask DisposeAsync()
    {
        await _committing.WaitAsync().ConfigureAwait(false);
        Close();
    }

    /// <summary>Does what <see cref="DisposeAsync"/> does, and blocks until then.</summary>
    public void Dispose()
    {
        _committing.Wait();
        Close();
    }

    // Whoever opens it next must not have a late commit of this one written over its own.
    private void Close()
    {
        _isClosed = true;
        _fileLock.Dispose();
        _committing.Release();
    }

    private static async Task<JournalConsumer> OpenAtAsync(
        string folder, string name, Journal? journal, JournalConsumerOptions options, CancellationToken cancellationToken)
    {
        string path = PathOf(folder, name);
        if (!Directory.Exists(folder))
        {
            throw new DirectoryNotFoundException($"There is no such folder: '{folder}'");
        }

        JournalFolder.Make(Path.GetDirectoryName(path)!);
        FileLock fileLock = await JournalFolder.LockAsync(LockOf(path), IsOpen(name, path), cancellationToken).ConfigureAwait(false);
        try
        {
            JournalConsumer consumer = new(folder, name, fileLock, journal, options);
            if (Read(path) is { } position)
            {
                ThrowIfAnothers(path, name);
                JournalCursor.Check(consumer.Source(), position, consumer.End());
                consumer._position = position;
            }
            else
            {
                consumer._position = await consumer.RegisterAsync(cancellationToken).ConfigureAwait(false);
            }

            consumer._read = consumer._position.Sequence;
            return consumer;
        }
        catch
        {
            fileLock.Dispose();
            throw;
        }
    }

    /// <summary>Writes the first position of a consumer, at a record that is still there then.</summary>
    private async ValueTask<JournalPosition> RegisterAsync(CancellationToken cancellationToken)
    {
        for (int tries = 1; ; tries++)
        {
            try
            {
                JournalPosition begin = await BeginAsync(cancellationToken).ConfigureAwait(false);
                if (_journal is null)
                {
                    await RegisterAtAsync(begin, cancellationToken).ConfigureAwait(false);
                }
                else
                {
                    await _journal.BetweenRemovalsAsync(RegisterAtAsync, begin, cancellationToken).ConfigureAwait(false);
                }

                return begin;
            }
            catch (Exception e) when (e is JournalRecordsRemovedException or FileNotFoundException && tries < MostTries)
            {
                // Somebody has trimmed meanwhile, who did not know of the consumer yet.
            }
        }
    }

    private async ValueTask RegisterAtAsync(JournalPosition begin, CancellationToken cancellationToken)
    {
        await WriteAsync(_path, begin, cancellationToken).ConfigureAwait(false);
        JournalCursor.Check(Source(), begin, End());
    }

    /// <summary>Where a new consumer begins. The records before are on the device, so that no others get their numbers.</summary>
    private async ValueTask<JournalPosition> BeginAsync(CancellationToken cancellationToken)
    {
        if (_options.BeginsAtEnd && _journal is not null)
        {
            JournalPosition end = _journal.Position;
            await _journal.SyncAsync().ConfigureAwait(false);
            return end;
        }

        SegmentState last = SegmentState.LastOf(_folder, cancellationToken)
            ?? throw new DirectoryNotFoundException($"There is no journal in the folder: '{_folder}'");
        if (_options.BeginsAtEnd)
        {
            SegmentFile.Sync(last.File.Path);
            return new JournalPosition(
                last.Header.Id, last.Next == last.Header.First ? last.Header.EpochBefore : last.Header.Epoch, last.Next);
        }

        SegmentHeader first = SegmentHeader.Read(SegmentFile.In(_folder)[0]);
        return new JournalPosition(first.Id, first.EpochBefore, first.First);
    }

    private IJournalSource Source() => _journal is not null ? _journal : new FolderSource(_folder, _options.FollowInterval);

    private long End() => _journal?.Committed ?? SegmentState.LastOf(_folder, CancellationToken.None)?.Next ?? 0;

    private static async ValueTask WriteAsync(string path, JournalPosition position, CancellationToken cancellationToken)
    {
        FilePipeWriter writer = await FilePipeWriter.OpenAsync(
            path, new FilePipeWriterOptions { Replace = true, FlushGuarantee = FlushGuarantee.Durable }, cancellationToken)
            .ConfigureAwait(false);
        await using (writer.ConfigureAwait(false))
        {
            writer.Write(Encoding.ASCII.GetBytes(position + "\n"));
            await writer.CompleteAsync().ConfigureAwait(false);
        }
    }

    /// <summary>The position in a file; <see langword="null"/> if there is none.</summary>
    private static JournalPosition? Read(string path)
    {
        string text;
        try
        {
            // Not as File.ReadAllText, which on Windows keeps the consumer from replacing it meanwhile.
            using StreamReader reader = new(new FileStream(path, FileMode.Open, FileAccess.Read, SegmentFile.Share));
            text = reader.ReadToEnd();
        }
        catch (IOException e) when (e is FileNotFoundException or DirectoryNotFoundException)
        {
            return null;
        }

        return text.EndsWith('\n') && JournalPosition.TryParse(text[..^1], out JournalPosition position) ? position
            : throw new InvalidJournalException("The position of a consumer is damaged.", path, 0, 0);
    }

    /// <summary>Where a file system ignores case, the file may be that of a consumer with another name, and so another place.</summary>
    private static void ThrowIfAnothers(string path, string name)
    {
        if (!Directory.EnumerateFiles(Path.GetDirectoryName(path)!).Select(Path.GetFileName).Contains(name + Extension))
        {
            throw new IOException(
                $"The file system ignores case, and a consumer is registered whose name differs from '{name}' in that alone: '{path}'");
        }
    }

    private static string PathOf(string folder, string name) => Path.Combine(folder, JournalFormat.ConsumersName, name + Extension);

    private static string LockOf(string path) => Path.ChangeExtension(path, LockExtension);

    private static string IsOpen(string name, string path)
        => $"The consumer '{name}' is open already, in this process or another one: '{path}'";

    private static void ThrowIfNoName(string name)
    {
        ArgumentException.ThrowIfNullOrEmpty(name);
        if (name.Length > MostNameLength || name[0] == '.' || name.AsSpan().ContainsAnyExcept(s_nameChars))
        {
            throw new ArgumentException(
                "The name of a consumer has 1 to 100 letters and digits of ASCII, '-', '_' and '.', which is not the first one.",
                nameof(name));
        }
    }
}
