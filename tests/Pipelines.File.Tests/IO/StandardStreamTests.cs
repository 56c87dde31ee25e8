using System.Net;
using System.Net.Sockets;

namespace FilePipelines.Tests;

/// <summary>Standard input and output as a shell hands them over: files from where they were left, pipes, sockets.</summary>
public sealed class StandardStreamTests : FileTests
{
    public StandardStreamTests() => ChildProcess.SkipUnlessLinux("bash");

    private static string Copy => ChildProcess.Command("copy");

    [Fact]
    public async Task OpenStandardInput_FileOfWhichTheHeaderWasRead_GoesOnBehindIt()
    {
        string path = _folder.File("f", "header\nfirst\nsecond\n"u8.ToArray());
        Assert.Equal("first\nsecond\n", await OutputAsync($"(read header; {Copy}) <'{path}'"));
    }

    [Fact]
    public async Task OpenStandardInput_NotReadToTheEnd_LeavesTheRestToTheNext()
    {
        string path = _folder.File("f", "header\nfirst\nsecond\n"u8.ToArray());
        Assert.Equal("first\n--second\n",
            await OutputAsync($"(read header; {ChildProcess.Command("copy", "6")}; echo -n --; cat) <'{path}'"));
    }

    [Fact]
    public async Task OpenStandardOutput_FileWithAHeader_GoesOnBehindItAndTheNextBehindThat()
    {
        string path = _folder.File("f", "much older content that is to go\n"u8.ToArray());
        Assert.Empty(await OutputAsync($"(echo header; {ChildProcess.Command("lines", "line", "3")}; echo footer) >'{path}'"));
        Assert.Equal("header\nline 0\nline 1\nline 2\nfooter\n", await File.ReadAllTextAsync(path, _stop));
    }

    [Fact]
    public async Task OpenStandardOutput_Appending_KeepsTheLog()
    {
        string path = _folder.File("log", "old\n"u8.ToArray());
        Assert.Empty(await OutputAsync($"{ChildProcess.Command("lines", "line", "2")} >>'{path}'"));
        Assert.Equal("old\nline 0\nline 1\n", await File.ReadAllTextAsync(path, _stop));
    }

    [Fact]
    public async Task OpenStandardOutput_SeveralProcessesAtOnce_KeepEveryLine()
    {
        foreach (string into in new[] { ">", ">>" })
        {
            string path = _folder.File("f", "old\n"u8.ToArray());
            Assert.Empty(await OutputAsync(
                $"({string.Join(" & ", Enumerable.Range(0, 3).Select(i => ChildProcess.Command("lines", $"process {i}", "2000")))} & wait) "
                + $"{into}'{path}'"));
            string[] lines = await File.ReadAllLinesAsync(path, _stop);
            Assert.Equal(
                Enumerable.Range(0, 3).SelectMany(i => Enumerable.Range(0, 2000).Select(line => $"process {i} {line}"))
                    .Order(StringComparer.Ordinal),
                lines.Skip(into == ">" ? 0 : 1).Order(StringComparer.Ordinal));
        }
    }

    [Fact]
    public async Task OpenStandardStreams_Pipes_CopyEverything()
    {
        string path = _folder.File("f", Pattern.Bytes(3_000_000));
        Assert.Empty(await OutputAsync($"cat '{path}' | {Copy} | cat >'{path}.copy'"));
        Assert.Equal(Pattern.Bytes(3_000_000), File.ReadAllBytes(path + ".copy"));
    }

    [Fact]
    public async Task OpenStandardStreams_Files_CopyEverything()
    {
        string path = _folder.File("f", Pattern.Bytes(3_000_000));
        Assert.Empty(await OutputAsync($"{Copy} <'{path}' >'{path}.copy'"));
        Assert.Equal(Pattern.Bytes(3_000_000), File.ReadAllBytes(path + ".copy"));
        Assert.Empty(await OutputAsync($"{Copy} </dev/null"));
    }

    [Fact]
    public async Task OpenStandardStreams_Socket_EchoesWhatComes()
    {
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        Task<string> output = OutputAsync(
            $"exec bash -c \"exec {Copy} <>/dev/tcp/127.0.0.1/{((IPEndPoint)listener.LocalEndpoint).Port} >&0\"");
        using (Socket socket = await listener.AcceptSocketAsync(_stop).AsTask().WaitAsync(Eventually.Limit, _stop))
        {
            byte[] buffer = new byte[100];
            foreach (string text in new[] { "first", "second" })
            {
                await socket.SendAsync(Encoding.ASCII.GetBytes(text), _stop);
                int received = await socket.ReceiveAsync(buffer, _stop).AsTask().WaitAsync(Eventually.Limit, _stop);
                Assert.Equal(text, Encoding.ASCII.GetString(buffer, 0, received));
            }

            socket.Shutdown(SocketShutdown.Send);
            Assert.Equal(0, await socket.ReceiveAsync(buffer, _stop).AsTask().WaitAsync(Eventually.Limit, _stop));
        }

        Assert.Empty(await output);
    }

    [Fact]
    public async Task OpenStandardInput_Directory_IsRefused()
    {
        (int status, string output, _) = await ChildProcess.RunAsync($"{Copy} <'{_folder.Path}'");
        Assert.Equal(3, status);
        Assert.StartsWith("failed UnauthorizedAccessException", output, StringComparison.Ordinal);
    }

    private static async Task<string> OutputAsync(string command)
    {
        (int status, string output, string error) = await ChildProcess.RunAsync(command);
        Assert.True(status == 0, error + output);
        return output;
    }
}
