using System.Buffers;
using System.Buffers.Binary;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// What a file of the cache holds. Numbers are little-endian:
/// 4 bytes "PFC2"; 4 bytes CRC-32C of all that follows; 8 when it expires, in ticks of UTC (Int64.MaxValue: never); 8 sliding expiration in
/// ticks (0: none); 4 length of the key; 4 number of tags; 8 length of the body; the key in UTF-16, because in UTF-8 keys with a lone
/// surrogate would not differ; for each tag 8 bytes generation, 4 bytes length, UTF-16; the body. Lengths are in bytes.
/// </summary>
internal sealed class FileCacheEntry
{
    internal const int FixedLength = 40;

    /// <summary>An entry is read into one array.</summary>
    internal static readonly long MaxLength = Array.MaxLength;

    // Longer heads are no entry: nothing reasonable has them, and a damaged length must not make anybody allocate.
    private const int MaxHeadLength = 1 << 20;
    private const int ChecksumEnd = 8;
    private const uint Magic = 0x32434650;

    private FileCacheEntry(
        string key, (string Tag, long Generation)[] tags, DateTime expires, TimeSpan sliding, ReadOnlySequence<byte> body)
    {
        Key = key;
        Tags = tags;
        Expires = expires;
        Sliding = sliding;
        Body = body;
    }

    internal string Key { get; }

    internal (string Tag, long Generation)[] Tags { get; }

    internal DateTime Expires { get; }

    /// <summary>Zero: none.</summary>
    internal TimeSpan Sliding { get; }

    internal ReadOnlySequence<byte> Body { get; }

    /// <summary>
    /// Everything in front of the body, with the checksum over both; <see langword="null"/> if key and tags are too long for an entry.
    /// </summary>
    internal static byte[]? MakeHead(
        string key, ReadOnlySpan<(string Tag, long Generation)> tags, DateTime expires, TimeSpan sliding, ReadOnlySequence<byte> body)
    {
        long wanted = FixedLength + ((long)key.Length * sizeof(char));
        foreach ((string tag, _) in tags)
        {
            wanted += 12 + ((long)tag.Length * sizeof(char));
        }

        if (wanted > MaxHeadLength)
        {
            return null;
        }

        int length = (int)wanted;

        if (body.Length > MaxLength - length)
        {
            throw new ArgumentException($"An entry takes at most {MaxLength} bytes.");
        }

        byte[] head = new byte[length];
        BinaryPrimitives.WriteUInt32LittleEndian(head, Magic);
        BinaryPrimitives.WriteInt64LittleEndian(head.AsSpan(8), expires.Ticks);
        BinaryPrimitives.WriteInt64LittleEndian(head.AsSpan(16), sliding.Ticks);
        BinaryPrimitives.WriteInt32LittleEndian(head.AsSpan(24), key.Length * sizeof(char));
        BinaryPrimitives.WriteInt32LittleEndian(head.AsSpan(28), tags.Length);
        BinaryPrimitives.WriteInt64LittleEndian(head.AsSpan(32), body.Length);
        int position = FixedLength + Write(key, head.AsSpan(FixedLength));
        foreach ((string tag, long generation) in tags)
        {
            BinaryPrimitives.WriteInt64LittleEndian(head.AsSpan(position), generation);
            int written = Write(tag, head.AsSpan(position + 12));
            BinaryPrimitives.WriteInt32LittleEndian(head.AsSpan(position + 8), written);
            position += 12 + written;
        }

        SetChecksum(head, body);
        return head;
    }

    /// <summary>Gives an entry another end, an absolute one.</summary>
    internal static void SetExpiration(byte[] head, ReadOnlySequence<byte> body, DateTime expires)
    {
        BinaryPrimitives.WriteInt64LittleEndian(head.AsSpan(8), expires.Ticks);
        BinaryPrimitives.WriteInt64LittleEndian(head.AsSpan(16), 0);
        SetChecksum(head, body);
    }

    /// <summary>Whether a file that begins so is an entry with nothing but an absolute end, later than that.</summary>
    internal static bool IsKeptUntilAfter(ReadOnlySpan<byte> head, DateTime now)
        => head.Length == FixedLength && BinaryPrimitives.ReadUInt32LittleEndian(head) == Magic
            && BinaryPrimitives.ReadInt64LittleEndian(head[16..]) == 0 && BinaryPrimitives.ReadInt64LittleEndian(head[8..]) > now.Ticks;

    /// <summary>The entry that is the whole of a file; <see langword="null"/> if that is none, or damaged.</summary>
    internal static FileCacheEntry? Parse(ReadOnlySequence<byte> file)
    {
        if (file.Length < FixedLength)
        {
            return null;
        }

        Span<byte> head = stackalloc byte[FixedLength];
        file.Slice(0, FixedLength).CopyTo(head);
        int keyLength = BinaryPrimitives.ReadInt32LittleEndian(head[24..]);
        int tagCount = BinaryPrimitives.ReadInt32LittleEndian(head[28..]);
        long bodyLength = BinaryPrimitives.ReadInt64LittleEndian(head[32..]);
        long headLength = file.Length - bodyLength;
        if (BinaryPrimitives.ReadUInt32LittleEndian(head) != Magic || bodyLength < 0 || headLength is < FixedLength or > MaxHeadLength
            || keyLength < 0 || FixedLength + (long)keyLength > headLength
            || BinaryPrimitives.ReadUInt32LittleEndian(head[4..]) != ChecksumOf(file.Slice(ChecksumEnd)))
        {
            return null;
        }

        long expires = BinaryPrimitives.ReadInt64LittleEndian(head[8..]);
        byte[] text = file.Slice(FixedLength, headLength - FixedLength).ToArray();
        if (tagCount < 0 || tagCount > text.Length / 12 || expires < 0 || expires > DateTime.MaxValue.Ticks)
        {
            return null;
        }

        (string, long)[] tags = new (string, long)[tagCount];
        int position = keyLength;
        for (int i = 0; i < tags.Length; i++)
        {
            int length = text.Length - position < 12 ? -1 : BinaryPrimitives.ReadInt32LittleEndian(text.AsSpan(position + 8));
            if (length < 0 || length > text.Length - position - 12)
            {
                return null;
            }

            tags[i] = (TextOf(text.AsSpan(position + 12, length)), BinaryPrimitives.ReadInt64LittleEndian(text.AsSpan(position)));
            position += 12 + length;
        }

        return new FileCacheEntry(
            TextOf(text.AsSpan(0, keyLength)),
            tags,
            new DateTime(expires, DateTimeKind.Utc),
            new TimeSpan(BinaryPrimitives.ReadInt64LittleEndian(head[16..])),
            file.Slice(headLength));
    }

    // Not by an Encoding, which replaces a lone surrogate.
    private static int Write(string text, Span<byte> destination)
    {
        for (int i = 0; i < text.Length; i++)
        {
            BinaryPrimitives.WriteUInt16LittleEndian(destination[(i * sizeof(char))..], text[i]);
        }

        return text.Length * sizeof(char);
    }

    private static string TextOf(ReadOnlySpan<byte> bytes)
        => string.Create(bytes.Length / sizeof(char), bytes, static (text, bytes) =>
        {
            for (int i = 0; i < text.Length; i++)
            {
                text[i] = (char)BinaryPrimitives.ReadUInt16LittleEndian(bytes[(i * sizeof(char))..]);
            }
        });

    private static void SetChecksum(byte[] head, ReadOnlySequence<byte> body)
    {
        uint checksum = Crc32C.Append(0, head.AsSpan(ChecksumEnd));
        foreach (ReadOnlyMemory<byte> segment in body)
        {
            checksum = Crc32C.Append(checksum, segment.Span);
        }

        BinaryPrimitives.WriteUInt32LittleEndian(head.AsSpan(4), checksum);
    }

    private static uint ChecksumOf(ReadOnlySequence<byte> bytes)
    {
        uint checksum = 0;
        foreach (ReadOnlyMemory<byte> segment in bytes)
        {
            checksum = Crc32C.Append(checksum, segment.Span);
        }

        return checksum;
    }
}
