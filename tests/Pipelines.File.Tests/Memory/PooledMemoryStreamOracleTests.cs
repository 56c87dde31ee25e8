namespace FilePipelines.Tests;

/// <summary>
/// Random mixtures of operations, done to our stream and to a <see cref="MemoryStream"/>: the same answers, errors, places and bytes.
/// </summary>
public sealed class PooledMemoryStreamOracleTests
{
    public enum Verb
    {
        WriteSpan,
        WriteArray,
        WriteByte,
        WriteAsync,
        WriteArrayAsync,
        Advance,
        AdvanceLess,
        ReadSpan,
        ReadArray,
        ReadByte,
        ReadAsync,
        ReadArrayAsync,
        SeekBegin,
        SeekCurrent,
        SeekEnd,
        Position,
        SetLength,
        CopyTo,
        CopyToAsync,
        CopyToItself,
        WriteTo,
        WriteToItself,
        ToArray,
        Flush,
    }

    public sealed record Act(Verb Verb, int Size, int Place);

    private static Arbitrary<Act[]> Scenarios()
    {
        Gen<int> sizes = Gen.Frequency(
            (4, Gen.Choose(0, 40)),
            (4, Gen.Choose(41, 5000)),
            (2, Gen.Choose(5001, 40_000)),
            (1, Gen.Choose(40_001, 600_000)));

        // Relative to the length, in thousandths; negative ones are errors, and those past 1000 leave a gap.
        Gen<int> places = Gen.Frequency(
            (1, Gen.Choose(-50, -1)), (8, Gen.Choose(0, 1000)), (3, Gen.Constant(1000)), (2, Gen.Choose(1001, 1500)));
        Gen<Act> act = Gen.Zip(Gen.Elements(Enum.GetValues<Verb>()), Gen.Zip(sizes, places))
            .Select(t => new Act(t.Item1, t.Item2.Item1, t.Item2.Item2));
        return Gen.ListOf(act).Select(acts => acts.ToArray()).ToArbitrary();
    }

    [Fact]
    [Trait("Category", FuzzTime.Category)]
    public void AnyMixtureOfOperations_DoesWhatMemoryStreamDoes()
        => FuzzTime.Check(Prop.ForAll(Scenarios(), Check), cases: 150, endSize: 60);

    private static void Check(Act[] acts)
    {
        // What the pool hands out next is dirty, so that a byte that ought to be zero shows.
        using (PooledMemoryStream dirty = new())
        {
            dirty.Write(Enumerable.Repeat((byte)0xEE, 700_000).ToArray());
        }

        // Two at once, so that memory that both have shows, too.
        using PooledMemoryStream first = new();
        using PooledMemoryStream second = new();
        using MemoryStream firstOracle = new();
        using MemoryStream secondOracle = new();
        long index = 0;
        foreach (Act act in acts)
        {
            CheckAct(act, first, firstOracle, index);
            CheckAct(act, second, secondOracle, index + 1_000_003);
            index += act.Size;
        }

        CheckContent(first, firstOracle);
        CheckContent(second, secondOracle);
    }

    private static void CheckAct(Act act, PooledMemoryStream ours, MemoryStream oracle, long index)
    {
        Assert.Equal(Play(act, oracle, index), Play(act, ours, index));
        Assert.Equal((oracle.Length, oracle.Position), (ours.Length, ours.Position));
    }

    private static void CheckContent(PooledMemoryStream ours, MemoryStream oracle)
    {
        byte[] expected = oracle.ToArray();
        Assert.True(expected.AsSpan().SequenceEqual(ours.ToArray()));
        Assert.True(expected.AsSpan().SequenceEqual(ours.Sequence.ToArray()));
        Assert.Equal(expected.Length, ours.Sequence.Length);
    }

    /// <summary>What the operation answered, its error included; bytes as their hash.</summary>
    private static string Play(Act act, Stream stream, long index)
    {
        try
        {
            return Do(act, stream, index);
        }
        catch (Exception e) when (e is IOException or ArgumentException)
        {
            return e.GetType().Name;
        }
    }

    private static string Do(Act act, Stream stream, long index)
    {
        byte[] bytes = Pattern.Bytes(act.Size, index);
        byte[] buffer = new byte[act.Size + 10];
        long place = stream.Length * act.Place / 1000;
        Task done = Task.CompletedTask;
        int read = 0;
        switch (act.Verb)
        {
            case Verb.WriteSpan:
                stream.Write(bytes.AsSpan());
                break;
            case Verb.WriteArray:
                bytes.CopyTo(buffer, 7);
                stream.Write(buffer, 7, act.Size);
                break;
            case Verb.WriteByte:
                stream.WriteByte((byte)act.Size);
                break;
            case Verb.WriteAsync:
                done = stream.WriteAsync(bytes.AsMemory()).AsTask();
                break;
            case Verb.WriteArrayAsync:
                bytes.CopyTo(buffer, 3);
                done = stream.WriteAsync(buffer, 3, act.Size);
                break;
            case Verb.Advance or Verb.AdvanceLess when stream is PooledMemoryStream ours:
                // All of the memory is written, but only what is advanced over may show.
                int advanced = act.Verb == Verb.Advance ? act.Size : act.Size / 2;
                Span<byte> span = act.Size % 2 == 0 ? ours.GetSpan(act.Size) : ours.GetMemory(act.Size).Span;
                Assert.True(span.Length >= Math.Max(1, act.Size));
                span.Fill(0xAA);
                bytes.AsSpan(0, advanced).CopyTo(span);
                ours.Advance(advanced);
                break;
            case Verb.Advance or Verb.AdvanceLess when (act.Verb == Verb.Advance ? act.Size : act.Size / 2) is > 0 and int written:
                stream.Write(bytes, 0, written);
                break;
            case Verb.ReadSpan:
                read = stream.Read(buffer.AsSpan(0, act.Size));
                break;
            case Verb.ReadArray:
                read = stream.Read(buffer, 10, act.Size);
                break;
            case Verb.ReadByte:
                read = stream.ReadByte();
                break;
            case Verb.ReadAsync:
                Task<int> reading = stream.ReadAsync(buffer.AsMemory(0, act.Size)).AsTask();
                done = reading;
                read = reading.Result;
                break;
            case Verb.ReadArrayAsync:
                Task<int> readingArray = stream.ReadAsync(buffer, 5, act.Size);
                done = readingArray;
                read = readingArray.Result;
                break;
            case Verb.SeekBegin:
                return $"{stream.Seek(place, SeekOrigin.Begin)}";
            case Verb.SeekCurrent:
                return $"{stream.Seek(place - stream.Position, SeekOrigin.Current)}";
            case Verb.SeekEnd:
                return $"{stream.Seek(place - stream.Length, SeekOrigin.End)}";
            case Verb.Position:
                stream.Position = place;
                break;
            case Verb.SetLength:
                stream.SetLength(act.Size % 5 == 0 ? place + 1000 : place);
                break;
            case Verb.CopyTo or Verb.CopyToAsync:
                using (Destination destination = new())
                {
                    if (act.Verb == Verb.CopyTo)
                    {
                        stream.CopyTo(destination);
                    }
                    else
                    {
                        done = stream.CopyToAsync(destination);
                        Assert.True(done.IsCompletedSuccessfully);
                    }

                    return Hash(destination.Content);
                }

            case Verb.CopyToItself when stream.Length < 2_000_000:
                stream.CopyTo(stream);
                break;
            case Verb.WriteTo:
                using (Destination destination = new())
                {
                    if (stream is PooledMemoryStream ours)
                    {
                        ours.WriteTo(destination);
                    }
                    else
                    {
                        ((MemoryStream)stream).WriteTo(destination);
                    }

                    return Hash(destination.Content);
                }

            case Verb.WriteToItself when stream.Length < 2_000_000:
                (stream as PooledMemoryStream)?.WriteTo(stream);
                (stream as MemoryStream)?.WriteTo(stream);
                break;
            case Verb.ToArray:
                return Hash(stream is PooledMemoryStream pooled ? pooled.ToArray() : ((MemoryStream)stream).ToArray());
            case Verb.Flush:
                stream.Flush();
                done = stream.FlushAsync();
                break;
        }

        Assert.True(done.IsCompletedSuccessfully);
        return $"{read} {Hash(buffer)}";
    }

    private static string Hash(byte[] bytes)
        => $"{bytes.Length} {Convert.ToHexString(System.Security.Cryptography.SHA256.HashData(bytes))}";

    /// <summary>A stream that is no <see cref="MemoryStream"/>, for which there is a shorter way.</summary>
    private sealed class Destination : Stream
    {
        private readonly MemoryStream _content = new();

        public byte[] Content => _content.ToArray();

        public override bool CanRead => false;

        public override bool CanSeek => false;

        public override bool CanWrite => true;

        public override long Length => throw new NotSupportedException();

        public override long Position { get => throw new NotSupportedException(); set => throw new NotSupportedException(); }

        public override void Flush()
        {
        }

        public override int Read(byte[] buffer, int offset, int count) => throw new NotSupportedException();

        public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

        public override void SetLength(long value) => throw new NotSupportedException();

        public override void Write(byte[] buffer, int offset, int count) => _content.Write(buffer, offset, count);

        public override Task WriteAsync(byte[] buffer, int offset, int count, CancellationToken cancellationToken)
            => WriteAsync(buffer.AsMemory(offset, count), cancellationToken).AsTask();

        public override ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default)
        {
            _content.Write(buffer.Span);
            return ValueTask.CompletedTask;
        }
    }
}
