using System.Globalization;
using System.Text;
using Microsoft.Win32.SafeHandles;

namespace FilePipelines.Devices.Child;

/// <summary>
/// A log that is written and rotated, and a follower that ships its lines: each is written with the checkpoint behind it, so after a kill
/// the next follower goes on with the next line. Every line comes once, in order.
/// </summary>
internal sealed class CrashShipping(string folder, ExpectedState state) : ICrashFeature
{
    private const string Subject = "line";
    private const int LinesAFile = 3000;
    private const int KeptFiles = 4;
    private const int LongFile = 5_000_000;
    private const string KeptSubject = "shipped-kept";

    private readonly string _log = Path.Combine(Directory.CreateDirectory(Path.Combine(folder, "logs")).FullName, "log");
    private readonly string _shipped = Path.Combine(folder, "shipped");

    // What was shipped: the length of the whole records, the number of the last line, the position behind it.
    private long _end;
    private long _last = -1;
    private FileCheckpoint? _checkpoint;

    public async Task CheckAsync(bool isLast)
    {
        (_end, _last, _checkpoint) = (0, -1, null);
        string last = "";
        if (File.Exists(_shipped))
        {
            byte[] content = await File.ReadAllBytesAsync(_shipped);
            for (int at = 0, length; (length = content.AsSpan(at).IndexOf((byte)'\n')) >= 0; at += length + 1)
            {
                last = System.Text.Encoding.UTF8.GetString(content.AsSpan(at, length));
                Take(last, isFirst: at == 0);
                _end = at + length + 1;
            }
        }

        WrongStateException.Demand(
            _last >= state.LastDone(KeptSubject), $"{_last} is the last line that was shipped; {state.LastDone(KeptSubject)} was.");
        if (_end > LongFile)
        {
            // The last line is all that the next start needs.
            FilePipeWriter writer = FilePipeWriter.Create(_shipped, new() { Replace = true });
            Encoding.UTF8.GetBytes($"{last}\n", writer);
            await writer.CompleteAsync();
            _end = writer.Position;
            state.Done(KeptSubject, _last);
        }

        WrongStateException.Demand(
            _last <= state.LastBegun(Subject), $"Line {_last} was shipped, and {state.LastBegun(Subject)} is the last that was written.");
        if (isLast && state.LastDone(Subject) > _last)
        {
            using CancellationTokenSource limit = new(TimeSpan.FromSeconds(60));
            await ShipAsync(until: state.LastDone(Subject), limit.Token);
        }
    }

    public async Task RunAsync(Random random)
        => await await Task.WhenAny(Task.Run(() => WriteAsync(random)), Task.Run(() => ShipAsync(long.MaxValue, CancellationToken.None)));

    /// <summary>Writes lines, rotates, and removes the rotated files that were shipped.</summary>
    private async Task WriteAsync(Random random)
    {
        long line = await EndTornLineAsync() + 1;
        while (true)
        {
            if (File.Exists(_log) && line % LinesAFile < 50 && new FileInfo(_log).Length > 60_000)
            {
                await RotateAsync();
            }

            FilePipeWriter writer = FilePipeWriter.Create(_log, new() { Mode = FileMode.Append, FlushGuarantee = FlushGuarantee.Written });
            await using (writer)
            {
                for (int i = random.Next(1, 400); i > 0; i--, line++)
                {
                    state.Begin(Subject, line);
                    Encoding.UTF8.GetBytes($"{TextOf(line)}\n", writer);
                    await writer.FlushAsync();
                    state.Done(Subject, line);
                }
            }

            await Task.Delay(random.Next(20));
        }
    }

    /// <summary>Ends the line that the kill has torn, which is none then. Returns the last whole one.</summary>
    private async Task<long> EndTornLineAsync()
    {
        FilePipeWriter writer = FilePipeWriter.Create(_log, new() { Mode = FileMode.Append, FlushGuarantee = FlushGuarantee.Written });
        Encoding.UTF8.GetBytes($"\n", writer);
        await writer.CompleteAsync();
        long last = LastLineOf(_log) is >= 0 and long line ? line : File.Exists($"{_log}.1") ? LastLineOf($"{_log}.1") : -1;
        WrongStateException.Demand(
            last >= state.LastDone(Subject) && last <= state.LastBegun(Subject),
            $"{last} is the last line of the log; {state.LastDone(Subject)} is done, {state.LastBegun(Subject)} begun.");
        return last;
    }

    private async Task RotateAsync()
    {
        // Nothing that was not shipped is removed; and a follower without a checkpoint begins with the file that has the log's name.
        string oldest = $"{_log}.{KeptFiles}";
        while (Volatile.Read(ref _last) < (File.Exists(oldest) ? LastLineOf(oldest) : 0))
        {
            await Task.Delay(20);
        }

        File.Delete(oldest);
        for (int i = KeptFiles - 1; i > 0; i--)
        {
            if (File.Exists($"{_log}.{i}"))
            {
                File.Move($"{_log}.{i}", $"{_log}.{i + 1}");
            }
        }

        File.Move(_log, $"{_log}.1");
    }

    private async Task ShipAsync(long until, CancellationToken stop)
    {
        using (SafeFileHandle torn = File.OpenHandle(_shipped, FileMode.OpenOrCreate, FileAccess.Write))
        {
            RandomAccess.SetLength(torn, Math.Min(RandomAccess.GetLength(torn), _end));
        }

        FilePipeWriter writer = FilePipeWriter.Create(
            _shipped, new() { Mode = FileMode.OpenOrCreate, Offset = _end, FlushGuarantee = FlushGuarantee.Written });
        await using (writer)
        {
            LogFollowerOptions options = new()
            {
                Checkpoint = _checkpoint,
                QuietTime = TimeSpan.FromMilliseconds(200),
                FollowInterval = TimeSpan.FromMilliseconds(25),
            };
            await foreach (FollowedLine line in new LogFollower(_log, options).ReadLinesAsync(stop))
            {
                // After a kill during the very first line there is no checkpoint, and no line was shipped.
                WrongStateException.Demand(!line.IsAfterGap, $"A gap after line {_last}.");
                if (IsLine(line.ToString()))
                {
                    string record = $"{line.Checkpoint} {line}";
                    Take(record, isFirst: false);
                    Encoding.UTF8.GetBytes($"{record}\n", writer);
                    await writer.FlushAsync(stop);
                }

                if (_last >= until)
                {
                    return;
                }
            }
        }
    }

    private void Take(string record, bool isFirst)
    {
        int space = record.IndexOf(' ');
        long line = long.Parse(record.AsSpan(space + 1, record.LastIndexOf(' ') - space - 1), CultureInfo.InvariantCulture);
        WrongStateException.Demand(isFirst || line == _last + 1, $"Line {line} was shipped after line {_last}.");
        _checkpoint = FileCheckpoint.Parse(record[..space], CultureInfo.InvariantCulture);
        Volatile.Write(ref _last, line);
    }

    private static long LastLineOf(string path)
        => File.ReadLines(path).Where(IsLine)
            .Select(static line => long.Parse(line.Split(' ')[0], CultureInfo.InvariantCulture)).LastOrDefault(-1);

    private static string TextOf(long line)
        => string.Create(CultureInfo.InvariantCulture, $"{line} {new string('x', (int)(line * 31 % 97) + 1)}");

    // A torn line is the beginning of one, and its number or its length tells.
    private static bool IsLine(string text)
        => text.IndexOf(' ') is > 0 and int space
            && long.TryParse(text.AsSpan(0, space), CultureInfo.InvariantCulture, out long line) && text == TextOf(line);
}
