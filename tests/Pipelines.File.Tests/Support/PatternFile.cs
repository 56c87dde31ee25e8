namespace FilePipelines.Tests;

/// <summary>Files and pipes that hold the pattern.</summary>
internal static class PatternFile
{
    extension(PipeWriter writer)
    {
        /// <summary>Takes so many bytes of the pattern, and does not flush them.</summary>
        public void Put(int length, long index = 0)
        {
            Pattern.Fill(writer.GetSpan(length)[..length], index);
            writer.Advance(length);
        }

        /// <summary>Writes this, and completes it.</summary>
        public async Task WriteAllAsync(ReadOnlyMemory<byte> bytes)
        {
            await writer.WriteAsync(bytes, TestContext.Current.CancellationToken);
            await writer.CompleteAsync();
        }

        /// <summary>Completes it, by the blocking way or by the other.</summary>
        public async Task EndAsync(bool isAsync)
        {
            if (isAsync)
            {
                await writer.CompleteAsync();
            }
            else
            {
                writer.Complete();
            }
        }
    }

    /// <summary>Has a thread of the pool write so many bytes of the pattern in pieces, and complete the writer.</summary>
    public static Task WriteAsync(PipeWriter writer, int length)
    {
        const int Piece = 10_000;
        CancellationToken stop = TestContext.Current.CancellationToken;
        return Task.Run(
            async () =>
            {
                for (int index = 0; index < length; index += Piece)
                {
                    await writer.WriteAsync(Pattern.Bytes(Piece, index), stop);
                }

                await writer.CompleteAsync();
            },
            stop);
    }

    /// <summary>Reads to the end, checks every byte, completes the reader, and gives the index behind the last one.</summary>
    /// <param name="reader">At byte <paramref name="index"/> of the pattern.</param>
    /// <param name="index">Where it is.</param>
    public static async Task<long> ReadToEndAsync(PipeReader reader, long index = 0)
    {
        ReadResult result;
        do
        {
            result = await reader.ReadAsync(TestContext.Current.CancellationToken);
            foreach (ReadOnlyMemory<byte> memory in result.Buffer)
            {
                Assert.Equal(-1, Pattern.FirstDifference(memory.Span, index));
                index += memory.Length;
            }

            reader.AdvanceTo(result.Buffer.End);
        }
        while (!result.IsCompleted);

        await reader.CompleteAsync();
        return index;
    }

    /// <summary>Reads to the end, or to the error, and keeps what has come.</summary>
    public static async Task ReadAllAsync(PipeReader reader, ArrayBufferWriter<byte> read)
    {
        ReadResult result;
        do
        {
            result = await reader.ReadAsync(TestContext.Current.CancellationToken);
            foreach (ReadOnlyMemory<byte> memory in result.Buffer)
            {
                read.Write(memory.Span);
            }

            reader.AdvanceTo(result.Buffer.End);
        }
        while (!result.IsCompleted);
    }

    /// <summary>The file holds so many bytes of the pattern, from there on, and nothing else.</summary>
    public static void Check(string path, long length, long index = 0)
    {
        byte[] content = File.ReadAllBytes(path);
        Assert.Equal(length, content.Length);
        Assert.Equal(-1, Pattern.FirstDifference(content, index));
    }

    /// <summary>Appends to a file that somebody reads.</summary>
    public static void Append(string path, int length, long index)
    {
        using FileStream more = new(path, FileMode.Append, FileAccess.Write, FileShare.ReadWrite);
        more.Write(Pattern.Bytes(length, index));
    }

    /// <summary>Cuts a file that somebody reads, or makes it longer.</summary>
    public static void SetLength(string path, long length)
    {
        using FileStream file = new(path, FileMode.OpenOrCreate, FileAccess.Write, FileShare.ReadWrite);
        file.SetLength(length);
    }
}
