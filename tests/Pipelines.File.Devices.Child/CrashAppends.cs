using System.Buffers;
using System.Buffers.Binary;
using Microsoft.Win32.SafeHandles;

namespace FilePipelines.Devices.Child;

/// <summary>
/// A file to which records are appended, one writer after the other, with every guarantee but write-behind: what a flush has completed is
/// there after a kill.
/// </summary>
internal sealed class CrashAppends(string folder, ExpectedState state) : ICrashFeature
{
    private const string Subject = "append";
    private const string FirstSubject = "append-first";
    private const int HeaderLength = 8;
    private const int MaxRecord = 60_000;
    private const long LongFile = 20_000_000;

    private readonly string _path = Path.Combine(folder, "appended");

    // Behind the last whole record, and its number.
    private long _end;
    private long _next;

    public async Task CheckAsync()
    {
        if (!File.Exists(_path) && state.LastBegun(FirstSubject) >= 0)
        {
            // Killed behind the deletion.
            state.Done(FirstSubject, state.LastBegun(FirstSubject));
        }

        (_end, _next) = (0, Math.Max(0, state.LastDone(FirstSubject)));
        if (File.Exists(_path))
        {
            FilePipeReader reader = FilePipeReader.Create(_path);
            await using (reader)
            {
                while (await ReadRecordAsync(reader))
                {
                    _next++;
                }
            }
        }

        WrongStateException.Demand(
            _next > state.LastDone(Subject) && _next <= state.LastBegun(Subject) + 1,
            $"{_next} records are there; {state.LastDone(Subject)} is done, {state.LastBegun(Subject)} begun.");
    }

    public async Task RunAsync(Random random)
    {
        while (true)
        {
            if (_end > LongFile)
            {
                // Begins again. The state has the number of the first record before the file is deleted.
                state.Begin(FirstSubject, _next);
                File.Delete(_path);
                state.Done(FirstSubject, _next);
                _end = 0;
            }

            FilePipeWriter writer = Open(random);
            for (int i = random.Next(1, 60); i > 0; i--)
            {
                int length = random.Next(16) == 0 ? random.Next(MaxRecord) : random.Next(300);
                state.Begin(Subject, _next);
                WriteRecord(writer, length);
                await writer.FlushAsync(random.Next(4) == 0 ? FlushGuarantee.Durable : FlushGuarantee.Written);
                state.Done(Subject, _next);
                _end += HeaderLength + length;
                _next++;
            }

            await writer.CompleteAsync();
        }
    }

    private FilePipeWriter Open(Random random)
    {
        if (!File.Exists(_path))
        {
            return FilePipeWriter.Create(_path, new() { Mode = FileMode.CreateNew, PreallocationSize = random.Next(2) * 1_000_000 });
        }

        // A torn end is cut off first. Appending begins at the end that the file has.
        bool appends = new FileInfo(_path).Length == _end && random.Next(2) == 0;
        if (!appends)
        {
            using SafeFileHandle torn = File.OpenHandle(_path, FileMode.Open, FileAccess.Write);
            RandomAccess.SetLength(torn, Math.Min(RandomAccess.GetLength(torn), _end));
        }

        return FilePipeWriter.Create(
            _path,
            new()
            {
                Mode = appends ? FileMode.Append : FileMode.Open,
                Offset = appends ? null : _end,
                Caching = random.Next(3) == 0 ? FileCaching.DropBehind : FileCaching.Keep,
            });
    }

    private void WriteRecord(FilePipeWriter writer, int length)
    {
        Span<byte> header = stackalloc byte[HeaderLength];
        BinaryPrimitives.WriteInt32LittleEndian(header, length + 1);
        BinaryPrimitives.WriteInt32LittleEndian(header[4..], (int)_next);
        writer.Write(header);
        writer.Write(Pattern.Bytes(length, _next * 7919));
    }

    /// <summary>Reads one record. <see langword="false"/>: the rest is none, or not whole.</summary>
    private async Task<bool> ReadRecordAsync(FilePipeReader reader)
    {
        ReadOnlySequence<byte> buffer = (await reader.ReadAtLeastAsync(HeaderLength)).Buffer;
        if (buffer.Length < HeaderLength)
        {
            reader.AdvanceTo(buffer.Start);
            return false;
        }

        byte[] header = buffer.Slice(0, HeaderLength).ToArray();
        int length = BinaryPrimitives.ReadInt32LittleEndian(header) - 1;
        reader.AdvanceTo(buffer.Start);
        if (length is < 0 or > MaxRecord || BinaryPrimitives.ReadInt32LittleEndian(header.AsSpan(4)) != (int)_next)
        {
            // Zeros that were preallocated, or a torn header.
            return false;
        }

        buffer = (await reader.ReadAtLeastAsync(HeaderLength + length)).Buffer;
        bool isWhole = buffer.Length >= HeaderLength + length
            && Pattern.FirstDifference(buffer.Slice(HeaderLength, length).ToArray(), _next * 7919) < 0;
        reader.AdvanceTo(isWhole ? buffer.GetPosition(HeaderLength + length) : buffer.Start);
        _end += isWhole ? HeaderLength + length : 0;
        return isWhole;
    }
}
