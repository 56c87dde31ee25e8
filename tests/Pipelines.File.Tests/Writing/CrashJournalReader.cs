using System.Buffers;
using System.IO.Pipelines;

namespace FilePipelines.Tests;

/// <summary>The records of a journal, from its beginning to its end or to the first torn one.</summary>
internal sealed class CrashJournalReader(PipeReader input) : IAsyncDisposable
{
    private uint _seed = CrashJournalRecord.FirstSeed;
    private ReadOnlySequence<byte> _buffer;
    private bool _isStarted;

    /// <summary>The file offset behind the last whole record, bytes.</summary>
    internal long End { get; private set; }

    /// <summary>The CRC of the last whole record.</summary>
    internal uint Seed => _seed;

    /// <summary>Reads on. <see langword="null"/>: there is no further whole record. What it returns is valid until the next call.</summary>
    /// <exception cref="InvalidDataException">This is no journal.</exception>
    internal async ValueTask<ReadOnlySequence<byte>?> ReadAsync()
    {
        if (!_isStarted)
        {
            await StartAsync();
        }

        while (true)
        {
            if (CrashJournalRecord.TryRead(ref _buffer, ref _seed, out ReadOnlySequence<byte> record, out long needed))
            {
                End += CrashJournalRecord.HeaderLength + record.Length;
                return record;
            }

            if (needed == 0 || !await FillAsync(needed))
            {
                return null;
            }
        }
    }

    public ValueTask DisposeAsync() => input.CompleteAsync();

    private async ValueTask StartAsync()
    {
        _isStarted = true;
        _buffer = (await input.ReadAtLeastAsync(CrashJournalRecord.Magic.Length)).Buffer;
        if (_buffer.Length < CrashJournalRecord.Magic.Length
            || !_buffer.Slice(0, CrashJournalRecord.Magic.Length).ToArray().AsSpan().SequenceEqual(CrashJournalRecord.Magic))
        {
            throw new InvalidDataException("This is no journal: it does not begin as one.");
        }

        End = CrashJournalRecord.Magic.Length;
        _buffer = _buffer.Slice(End);
    }

    /// <summary>Gives back what was read, and waits until as many bytes are there. <see langword="false"/>: the file ends before.</summary>
    private async ValueTask<bool> FillAsync(long needed)
    {
        input.AdvanceTo(_buffer.Start, _buffer.End);
        _buffer = (await input.ReadAtLeastAsync((int)needed)).Buffer;
        return _buffer.Length >= needed;
    }
}
