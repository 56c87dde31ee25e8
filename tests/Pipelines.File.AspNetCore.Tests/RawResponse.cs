namespace FilePipelines.AspNetCore.Tests;

/// <summary>One response as it came over the wire, byte for byte but for the Date header, the body as its length and hash.</summary>
public sealed record RawResponse(string Head, long BodyLength, string BodyHash, bool IsWhole)
{
    /// <summary>Sends one request and reads one response. <paramref name="request"/> is the lines of its head.</summary>
    public static async Task<RawResponse> GetAsync(Stream connection, params string[] request)
    {
        await connection.WriteAsync(
            Encoding.ASCII.GetBytes(string.Join("\r\n", request) + "\r\n\r\n"), TestContext.Current.CancellationToken);
        return await ReadAsync(connection, isHead: request[0].StartsWith("HEAD", StringComparison.Ordinal));
    }

    /// <summary>Reads one response.</summary>
    public static async Task<RawResponse> ReadAsync(Stream connection, bool isHead = false)
    {
        BufferedStream buffered = new(connection, 64 * 1024);
        List<string> head = [];
        long? contentLength = null;
        bool isChunked = false;
        while (await ReadLineAsync(buffered) is { Length: > 0 } line)
        {
            if (line.StartsWith("Date:", StringComparison.Ordinal))
            {
                continue;
            }

            head.Add(line);
            if (line.StartsWith("Content-Length: ", StringComparison.Ordinal))
            {
                contentLength = long.Parse(line.AsSpan(16), CultureInfo.InvariantCulture);
            }

            isChunked |= line == "Transfer-Encoding: chunked";
        }

        bool hasBody = head.Count > 0 && !isHead && !head[0].Contains(" 304 ", StringComparison.Ordinal)
            && !head[0].Contains(" 204 ", StringComparison.Ordinal);
        using IncrementalHash hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        long length = 0;
        bool isWhole = head.Count > 0;
        if (hasBody && isChunked)
        {
            while (true)
            {
                string? size = await ReadLineAsync(buffered);
                if (string.IsNullOrEmpty(size))
                {
                    isWhole = false;
                    break;
                }

                long chunk = long.Parse(size, NumberStyles.HexNumber, CultureInfo.InvariantCulture);
                long read = await HashAsync(buffered, hash, chunk);
                length += read;
                isWhole = read == chunk && await ReadLineAsync(buffered) is not null;
                if (chunk == 0 || !isWhole)
                {
                    break;
                }
            }
        }
        else if (hasBody)
        {
            length = await HashAsync(buffered, hash, contentLength ?? long.MaxValue);
            isWhole = contentLength is null || length == contentLength;
        }

        return new RawResponse(string.Join("\n", head), length, Convert.ToHexString(hash.GetHashAndReset()), isWhole);
    }

    private static async Task<long> HashAsync(Stream stream, IncrementalHash hash, long wanted)
    {
        byte[] buffer = new byte[64 * 1024];
        long done = 0;
        while (done < wanted)
        {
            int read = await ReadAsync(stream, buffer.AsMemory(0, (int)Math.Min(buffer.Length, wanted - done)));
            if (read == 0)
            {
                break;
            }

            hash.AppendData(buffer, 0, read);
            done += read;
        }

        return done;
    }

    private static async Task<string?> ReadLineAsync(Stream stream)
    {
        StringBuilder line = new();
        byte[] one = new byte[1];
        while (await ReadAsync(stream, one) == 1)
        {
            if (one[0] == '\n')
            {
                return line.ToString().TrimEnd('\r');
            }

            line.Append((char)one[0]);
        }

        return null;
    }

    // An aborted connection ends the response like a closed one.
    private static async Task<int> ReadAsync(Stream stream, Memory<byte> buffer)
    {
        try
        {
            return await stream.ReadAsync(buffer, TestContext.Current.CancellationToken);
        }
        catch (IOException e) when (e.InnerException is SocketException)
        {
            return 0;
        }
    }
}
