using System.Net;

namespace FilePipelines.Repository.Tests;

/// <summary>samples/FileServer as a process under a limit of the system.</summary>
public sealed class SampleLimitTests : IDisposable
{
    private readonly string _root = Directory.CreateTempSubdirectory("file-server-").FullName;
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => Directory.Delete(_root, recursive: true);

    [Fact]
    public async Task Upload_AboveTheLimitOfTheLengthOfFiles_FailsAlone()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "ulimit(1).");

        // The runtime's own file in memory would exceed the limit, too. (Blocks of 512 or of 1,024 bytes.)
        ProcessStartInfo start = new("/bin/sh",
            ["-c", $"ulimit -f 64; DOTNET_EnableWriteXorExecute=0 exec dotnet FileServer.dll --port 0 --root '{_root}'"])
        {
            WorkingDirectory = AppContext.BaseDirectory,
            RedirectStandardOutput = true,
        };
        using Process server = Process.Start(start)!;
        try
        {
            string said = Assert.IsType<string>(await server.StandardOutput.ReadLineAsync(_stop));
            Uri files = new(new Uri(said.Split(" at ")[1].Split(' ')[0]), "files/");
            using HttpClient client = new();
            Assert.Equal(HttpStatusCode.InternalServerError, await PutAsync("large", 100_000));
            Assert.Equal(HttpStatusCode.Created, await PutAsync("small", 10_000));
            Assert.Equal(10_000, new FileInfo(Path.Combine(_root, "small")).Length);
            Assert.False(File.Exists(Path.Combine(_root, "large")));

            async Task<HttpStatusCode> PutAsync(string name, int length)
            {
                using HttpResponseMessage answer = await client.PutAsync(
                    new Uri(files, name), new ByteArrayContent(new byte[length]), _stop);
                return answer.StatusCode;
            }
        }
        finally
        {
            server.Kill();
            await server.WaitForExitAsync(CancellationToken.None);
        }
    }
}
