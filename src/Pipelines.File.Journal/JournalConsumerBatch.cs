using System.Collections;

namespace Pipelines.File;

/// <summary>Records that a <see cref="JournalConsumer"/> has read, in memory of their own: they may be kept.</summary>
public sealed class JournalConsumerBatch : IReadOnlyList<JournalRecordCopy>
{
    private readonly JournalRecordCopy[] _records;

    internal JournalConsumerBatch(JournalBatch batch)
    {
        // One piece of memory for all of them.
        ReadOnlyMemory<byte> bytes = batch.Valid().ToArray();
        _records = new JournalRecordCopy[batch.Count];
        Position = batch.Position;
        int count = 0;
        for (int place = 0; place < bytes.Length;)
        {
            RecordHeader header = RecordHeader.Read(bytes.Span[place..]);
            if (!header.IsStatement)
            {
                _records[count++] = new JournalRecordCopy(
                    header.Sequence, bytes.Slice(place + RecordHeader.Length, header.ContentLength));
            }

            place += (int)JournalFormat.Padded(header.Size);
        }
    }

    /// <summary>The number of records, at least 1.</summary>
    public int Count => _records.Length;

    /// <summary>The sequence number of the first record.</summary>
    public long FirstSequence => _records[0].Sequence;

    /// <summary>The sequence number after the last record: what to commit when all of them are processed.</summary>
    public long NextSequence => Position.Sequence;

    /// <summary>The place behind the last record.</summary>
    public JournalPosition Position { get; }

    /// <summary>A record.</summary>
    /// <param name="index">Its index in the batch, from 0.</param>
    public JournalRecordCopy this[int index] => _records[index];

    /// <summary>Enumerates the records.</summary>
    public IEnumerator<JournalRecordCopy> GetEnumerator() => ((IEnumerable<JournalRecordCopy>)_records).GetEnumerator();

    IEnumerator IEnumerable.GetEnumerator() => GetEnumerator();
}
