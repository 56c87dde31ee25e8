using System.Net;

namespace FilePipelines.Tests;

/// <summary>Text and interpolated strings as UTF-8: the bytes of the string, into any writer, without the string.</summary>
public sealed class WriteUtf8Tests
{
    private static readonly IFormatProvider?[] s_providers =
    [
        null,
        CultureInfo.InvariantCulture,
        CultureInfo.GetCultureInfo("de-DE"),
        new Shouting(),
    ];

    [Theory]
    [InlineData("")]
    [InlineData("plain")]
    [InlineData("Grüße, 世界 🦊")]
    [InlineData("half \ud83e of one")]
    public void WriteUtf8_AnyText_WritesItsBytesAndNoLength(string text)
    {
        foreach (int times in (int[])[1, 100, 5000])
        {
            string long_ = string.Concat(Enumerable.Repeat(text, times));
            Assert.Equal(Encoding.UTF8.GetBytes(long_), Bytes(writer => writer.WriteUtf8(long_)));
            Assert.Equal(Encoding.UTF8.GetBytes(long_), Bytes(writer => writer.WriteUtf8(long_.AsSpan())));
        }
    }

    [Fact]
    public void WriteUtf8_InterpolatedString_WritesTheBytesOfTheString()
    {
        DateTimeOffset now = new(2026, 11, 22, 5, 4, 3, 2, TimeSpan.FromHours(1));
        object boxed = 12.5m;
        string? nothing = null;
        foreach (IFormatProvider? provider in s_providers)
        {
            // string.Create is given the same holes.
            Check(provider, string.Create(provider, $"{now:O} {1234.5:N2} {-7} x"),
                w => w.WriteUtf8(provider, $"{now:O} {1234.5:N2} {-7} x"));
            Check(provider, string.Create(provider, $"[{3,8}] [{3,-8}] [{1.25,10:F3}] [{1.25,-10:F3}]"),
                w => w.WriteUtf8(provider, $"[{3,8}] [{3,-8}] [{1.25,10:F3}] [{1.25,-10:F3}]"));
            Check(provider, string.Create(provider, $"{"ü",5}|{"ü",-5}|{"long enough",3}|{'ü',4}|{nothing,3}|"),
                w => w.WriteUtf8(provider, $"{"ü",5}|{"ü",-5}|{"long enough",3}|{'ü',4}|{nothing,3}|"));
            Check(provider,
                string.Create(provider, $"{boxed:F3} {true} {FlushGuarantee.Durable} {FlushGuarantee.Durable,9:D} {new Version(1, 2)}"),
                w => w.WriteUtf8(provider, $"{boxed:F3} {true} {FlushGuarantee.Durable} {FlushGuarantee.Durable,9:D} {new Version(1, 2)}"));
            Check(provider, string.Create(provider, $"{IPAddress.Loopback,20} {Guid.Empty:N} {TimeSpan.FromSeconds(5):c} {new Plain()} "
                + $"{new Chars(),-400}"), w => w.WriteUtf8(
                    provider, $"{IPAddress.Loopback,20} {Guid.Empty:N} {TimeSpan.FromSeconds(5):c} {new Plain()} {new Chars(),-400}"));
            Check(provider, string.Create(provider, $"{new Chars(),400}{(int?)null}{(int?)5:X4}"),
                w => w.WriteUtf8(provider, $"{new Chars(),400}{(int?)null}{(int?)5:X4}"));
        }
    }

    [Fact]
    public void WriteUtf8_HalfOfASurrogatePair_IsReplaced()
    {
        char half = '\uD83D';
        Assert.Equal("\uFFFD|  \uFFFD|\uFFFD\uFFFD",
            Encoding.UTF8.GetString(Bytes(w => w.WriteUtf8($"{half}|{half,3}|{(char?)half}{'\uDE00'}"))));
    }

    [Fact]
    public void WriteUtf8_Utf8Hole_IsCopiedAndAlignedByCharacters()
        => Assert.Equal("[üü] [  üü] [üü  ]",
            Encoding.UTF8.GetString(Bytes(w => w.WriteUtf8($"[{"üü"u8}] [{"üü"u8,4}] [{"üü"u8,-4}]"))));

    [Fact]
    public void WriteUtf8_LongHole_AsksForMoreMemory()
    {
        System.Numerics.BigInteger large = System.Numerics.BigInteger.Pow(7, 5000);
        Assert.Equal(Encoding.UTF8.GetBytes($"{large} {1,5000}"), Bytes(w => w.WriteUtf8($"{large} {1,5000}")));
    }

    [Fact]
    public async Task WriteUtf8_HoleThatWritesOrAwaits_KeepsTheOrder()
    {
        ArrayBufferWriter<byte> writer = new();
        writer.WriteUtf8($"a{Inner()}c{await Task.FromResult(4)}");
        Assert.Equal("abXc4", Encoding.UTF8.GetString(writer.WrittenSpan));

        string Inner()
        {
            writer.WriteUtf8("b");
            return "X";
        }
    }

    [Fact]
    public void WriteUtf8_AfterWarmUp_AllocatesNothing()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Under Wine the runtime allocates while it formats.");
        using PooledMemoryStream stream = new();
        DateTime now = DateTime.UtcNow;
        string message = "message";

        // Until the JIT has compiled it again, a value that is cast to its interface is boxed.
        long allocated = -1;
        foreach (int round in Warm.Rounds(1, () => allocated == 0))
        {
            long before = GC.GetAllocatedBytesForCurrentThread();
            for (int i = 0; i < 1000; i++)
            {
                stream.SetLength(0);
                stream.WriteUtf8(CultureInfo.InvariantCulture, $"{now:O} {i,5} {i * 0.5:F2} {message,-10} {Guid.Empty}\n");
                stream.WriteUtf8(message);
            }

            allocated = GC.GetAllocatedBytesForCurrentThread() - before;
        }

        Assert.Equal(0, allocated);
    }

    [Fact]
    public void WriteUtf8_LongText_AsksForPiecesThatAPoolHas()
    {
        Stingy writer = new();
        string text = string.Concat(Enumerable.Repeat("ab\U0001F600", 300_000));
        writer.WriteUtf8(text);
        Assert.True(Encoding.UTF8.GetBytes(text).AsSpan().SequenceEqual(CollectionsMarshal.AsSpan(writer.Content)));
        Assert.InRange(writer.Most, 1, 64 * 1024);
    }

    [Fact]
    public void WriteUtf8_NullArguments_Throw()
    {
        IBufferWriter<byte> none = null!;
        Assert.Throws<ArgumentNullException>(() => none.WriteUtf8("x"));
        Assert.Throws<ArgumentNullException>(() => none.WriteUtf8($"{1}"));
        Assert.Throws<ArgumentNullException>(() => new ArrayBufferWriter<byte>().WriteUtf8((string)null!));
    }

    private static void Check(IFormatProvider? provider, string expected, Action<IBufferWriter<byte>> write)
        => Assert.Equal((provider, expected), (provider, Encoding.UTF8.GetString(Bytes(write))));

    /// <summary>What every kind of writer gets, one that gives no byte more than it has to among them.</summary>
    private static byte[] Bytes(Action<IBufferWriter<byte>> write)
    {
        Stingy stingy = new();
        write(stingy);
        using PooledMemoryStream stream = new();
        write(stream);
        Pipe pipe = new(new PipeOptions(pauseWriterThreshold: 0));
        write(pipe.Writer);
        pipe.Writer.Complete();
        pipe.Reader.TryRead(out ReadResult result);
        Assert.Equal(stingy.Content.ToArray(), stream.ToArray());
        Assert.Equal(stingy.Content.ToArray(), result.Buffer.ToArray());
        return stingy.Content.ToArray();
    }

    private sealed class Stingy : IBufferWriter<byte>
    {
        private byte[] _memory = [];

        public List<byte> Content { get; } = [];

        /// <summary>The most that was asked for at once.</summary>
        public int Most { get; private set; }

        public void Advance(int count)
        {
            Content.AddRange(_memory.AsSpan(0, count));
            _memory = [];
        }

        public Memory<byte> GetMemory(int sizeHint = 0)
        {
            Most = Math.Max(Most, sizeHint);
            return _memory = new byte[Math.Max(1, sizeHint)];
        }

        public Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;
    }

    private sealed class Plain
    {
        public override string ToString() => "plain";
    }

    /// <summary>Formats itself into characters only, more of them than there is room for at first.</summary>
    private readonly struct Chars : ISpanFormattable
    {
        private static readonly string s_text = new('ö', 300);

        public string ToString(string? format, IFormatProvider? formatProvider) => s_text;

        public bool TryFormat(Span<char> destination, out int charsWritten, ReadOnlySpan<char> format, IFormatProvider? provider)
        {
            charsWritten = s_text.TryCopyTo(destination) ? s_text.Length : 0;
            return charsWritten > 0;
        }
    }

    private sealed class Shouting : IFormatProvider, ICustomFormatter
    {
        public object? GetFormat(Type? formatType) => formatType == typeof(ICustomFormatter) ? this : null;

        public string Format(string? format, object? arg, IFormatProvider? formatProvider) => $"!{format}{arg}!";
    }
}
