using System.Buffers;
using System.IO.Pipelines;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;

namespace FilePipelines.Tests;

/// <summary>
/// An append-only journal. Any number of producers append at once, and each waits until its record is on the device: one sync serves all
/// that wait for one. What <see cref="AppendAsync"/> has completed survives a power failure; what it has not may be there or not, but never
/// half, and never with a gap before it.
/// </summary>
internal sealed class CrashJournal : IAsyncDisposable
{
    /// <summary>
    /// The file is filled with zeros this many bytes ahead, so that a commit changes blocks that the file has already: a sync of those
    /// writes the data alone, where one of new blocks writes the file system's journal, too.
    /// </summary>
    private const int DefaultStep = 1024 * 1024;

    private readonly SafeFileHandle _file;
    private readonly Func<FilePipeWriterOptions, FilePipeWriter> _write;
    private readonly FilePipeWriter _writer;
    private readonly byte[] _zeros;

    // Guards the writer, which one caller uses at a time, and the fields below.
    private readonly Lock _lock = new();
    private uint _seed;
    private long _end;
    private long _preallocated;

    /// <param name="file">The open file, which is the journal's from here on.</param>
    /// <param name="write">Puts a writer on it that leaves it open.</param>
    /// <param name="end">Behind the last whole record, where the file ends.</param>
    /// <param name="seed">The CRC of that record.</param>
    /// <param name="step">
    /// How many bytes are preallocated at a time; 0 for a file that only grows, which can be followed while it is written.
    /// </param>
    internal CrashJournal(
        SafeFileHandle file, Func<FilePipeWriterOptions, FilePipeWriter> write, long end, uint seed, int step = DefaultStep)
    {
        _zeros = new byte[step];
        _file = file;
        _write = write;
        _end = end;
        _preallocated = step == 0 ? long.MaxValue : end;
        _seed = seed;
        _writer = write(new FilePipeWriterOptions { Offset = end, LeaveOpen = true });
    }

    /// <summary>How many whole records the file had when it was opened.</summary>
    internal long Recovered { get; private init; }

    /// <summary>How many bytes behind them were cut off.</summary>
    internal long Cut { get; private init; }

    /// <summary>Opens a journal, or makes one, and cuts off what a crash has left behind its last whole record.</summary>
    /// <param name="path">The file.</param>
    /// <param name="step">As the constructor's.</param>
    /// <exception cref="InvalidDataException">The file is no journal. It is left as it is.</exception>
    /// <exception cref="IOException">It cannot be opened, read or cut; or another process has it open.</exception>
    internal static async Task<CrashJournal> OpenAsync(string path, int step = DefaultStep)
    {
        if (!File.Exists(path))
        {
            // Whole from the start: there is never a journal without its first bytes.
            FilePipeWriter empty = FilePipeWriter.Create(
                path, new FilePipeWriterOptions { Mode = FileMode.CreateNew, Replace = true, FlushGuarantee = FlushGuarantee.Durable });
            empty.Write(CrashJournalRecord.Magic);
            await empty.CompleteAsync();
        }

        SafeFileHandle file = File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.Read);
        try
        {
            long records = 0;
            CrashJournalReader reader = new(FilePipeReader.Create(file, new FilePipeReaderOptions { LeaveOpen = true }));
            await using (reader)
            {
                while (await reader.ReadAsync() is not null)
                {
                    records++;
                }
            }

            long cut = RandomAccess.GetLength(file) - reader.End;
            if (cut > 0)
            {
                // On the device before anything new is: what was cut off must not come back behind it.
                RandomAccess.SetLength(file, reader.End);
                RandomAccess.FlushToDisk(file);
            }

            return new CrashJournal(file, options => FilePipeWriter.Create(file, options), reader.End, reader.Seed, step)
            {
                Recovered = records,
                Cut = cut,
            };
        }
        catch
        {
            file.Dispose();
            throw;
        }
    }

    /// <summary>
    /// Appends a record. May be called by many at once; it completes when the record, and all before it, are on the device.
    /// </summary>
    /// <param name="record">At most 16 MiB. It is copied: the memory is the caller's again when this returns.</param>
    /// <exception cref="IOException">
    /// A write or a sync has failed, now or earlier: the journal takes nothing more, and recovery tells what it has.
    /// </exception>
    internal ValueTask<FlushResult> AppendAsync(ReadOnlySpan<byte> record)
    {
        ArgumentOutOfRangeException.ThrowIfGreaterThan(record.Length, CrashJournalRecord.MaxLength);
        lock (_lock)
        {
            _end += CrashJournalRecord.HeaderLength + record.Length;
            while (_end > _preallocated)
            {
                Preallocate();
            }

            CrashJournalRecord.Write(_writer, record, ref _seed);
            return _writer.FlushAsync(FlushGuarantee.Durable);
        }
    }

    /// <summary>Writes out everything, and cuts off what was preallocated.</summary>
    public async ValueTask DisposeAsync()
    {
        try
        {
            await _writer.CompleteAsync();
            RandomAccess.SetLength(_file, _end);
        }
        finally
        {
            _file.Dispose();
        }
    }

    /// <summary>Once for thousands of records, so all may wait for it. The next commit puts it on the device along with itself.</summary>
    private void Preallocate()
    {
        FilePipeWriter ahead = _write(new FilePipeWriterOptions { Offset = _preallocated, LeaveOpen = true });
        ahead.Write(_zeros);
        ahead.Complete();
        _preallocated += _zeros.Length;
    }
}
