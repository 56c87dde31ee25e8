using System.Diagnostics;
using System.Globalization;
using System.Net;
using System.Net.Sockets;
using System.Text;

// What benchmarks/serve.sh loads a server with besides wrk: clients that read little and seldom at first, then to the end, and look at
// every byte.
//     SlowClients make FILE BYTES                          a file whose every byte is known
//     SlowClients read PORT TARGET BYTES CLIENTS SECONDS   that file by that many clients at once, slowly for that long
byte[] pattern = new byte[1_000_003];
new Random(1).NextBytes(pattern);
if (args[0] == "make")
{
    using FileStream file = File.Create(args[1]);
    for (long left = long.Parse(args[2], CultureInfo.InvariantCulture); left > 0; left -= pattern.Length)
    {
        file.Write(pattern, 0, (int)Math.Min(left, pattern.Length));
    }

    return 0;
}

int port = int.Parse(args[1], CultureInfo.InvariantCulture);
string target = args[2];
long length = long.Parse(args[3], CultureInfo.InvariantCulture);
int clients = int.Parse(args[4], CultureInfo.InvariantCulture);
TimeSpan slow = TimeSpan.FromSeconds(double.Parse(args[5], CultureInfo.InvariantCulture));
long start = Stopwatch.GetTimestamp();
bool[] isRight = await Task.WhenAll(Enumerable.Range(0, clients).Select(_ => ReadAsync()));
Console.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{isRight.Count(right => right)} of {clients} bodies right, "
    + $"{clients * (double)length / 1e9:0.0} GB in {Stopwatch.GetElapsedTime(start).TotalSeconds:0} s"));
return isRight.All(right => right) ? 0 : 1;

async Task<bool> ReadAsync()
{
    await Task.Yield();
    using Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
    await socket.ConnectAsync(IPAddress.Loopback, port);
    await using NetworkStream stream = new(socket);
    await stream.WriteAsync(Encoding.ASCII.GetBytes($"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    byte[] buffer = new byte[256 * 1024];

    // The head first, a byte at a time: what follows is the body.
    StringBuilder head = new();
    while (!head.ToString().EndsWith("\r\n\r\n", StringComparison.Ordinal))
    {
        if (await stream.ReadAsync(buffer.AsMemory(0, 1)) == 0)
        {
            return false;
        }

        head.Append((char)buffer[0]);
    }

    if (!head.ToString().StartsWith("HTTP/1.1 200 ", StringComparison.Ordinal))
    {
        return false;
    }

    long position = 0;
    while (true)
    {
        bool isSlow = Stopwatch.GetElapsedTime(start) < slow;
        if (isSlow)
        {
            await Task.Delay(100);
        }

        int read = await stream.ReadAsync(buffer.AsMemory(0, isSlow ? 64 * 1024 : buffer.Length));
        if (read == 0)
        {
            return position == length;
        }

        for (int done = 0; done < read;)
        {
            int at = (int)((position + done) % pattern.Length);
            int count = Math.Min(read - done, pattern.Length - at);
            if (!buffer.AsSpan(done, count).SequenceEqual(pattern.AsSpan(at, count)))
            {
                return false;
            }

            done += count;
        }

        position += read;
    }
}
