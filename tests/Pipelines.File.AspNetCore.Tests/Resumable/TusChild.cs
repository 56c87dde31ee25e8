using System.Runtime.CompilerServices;

namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>
/// This test program as a server that is killed. The uploads are in the folder unfinished, the files in the folder saved.
/// </summary>
internal static class TusChild
{
    private const string Variable = "PIPELINES_FILE_TUS_CHILD";

    /// <summary>Starts the server, and waits until it listens.</summary>
    /// <param name="root">Where its folders are.</param>
    /// <param name="port">The port, or 0; set to the one that it has.</param>
    /// <param name="variable">A variable of the environment that is 1 there, or none.</param>
    internal static Process Start(string root, ref int port, string? variable = null)
    {
        port = port == 0 ? FreePort() : port;
        ProcessStartInfo info = new(Path.ChangeExtension(typeof(TusChild).Assembly.Location, null))
        {
            // The program waits for input before it runs no test, so it ends only when it is killed, or when this process has ended.
            ArgumentList = { "-pause", "-class", "None" },
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        info.Environment[Variable] = string.Create(CultureInfo.InvariantCulture, $"{port} {root}");
        if (variable is not null)
        {
            info.Environment[variable] = "1";
        }

        Process child = Process.Start(info)!;
        string? line = child.StandardError.ReadLine();
        if (!int.TryParse(line, CultureInfo.InvariantCulture, out port))
        {
            Assert.Fail(line + child.StandardError.ReadToEnd());
        }

        return child;
    }

    // Below those that systems give to clients: a client that calls a server which was killed could get its port, and so be connected with
    // itself.
    private static int FreePort()
    {
        while (true)
        {
            try
            {
                int port = Random.Shared.Next(15_000, 32_000);
                using TcpListener listener = new(IPAddress.Loopback, port);
                listener.Start();
                return port;
            }
            catch (SocketException)
            {
                // Somebody has it.
            }
        }
    }

    internal static string UnfinishedOf(string root) => Path.Combine(root, "unfinished");

    internal static string SavedOf(string root) => Path.Combine(root, "saved");

    [ModuleInitializer]
    internal static void RunIfChild()
    {
        if (Environment.GetEnvironmentVariable(Variable)?.Split(' ', 2) is [var port, var root])
        {
            // Every other thread waits for the types of this module until this method has returned.
            new Thread(() => ServeAsync(int.Parse(port, CultureInfo.InvariantCulture), root).GetAwaiter().GetResult()).Start();
        }
    }

    private static async Task ServeAsync(int port, string root)
    {
        Directory.CreateDirectory(SavedOf(root));
        TusServer server = await TusServer.StartAsync(
            new ResumableUploadOptions
            {
                Folder = UnfinishedOf(root),
                OnCompletedAsync = async (upload, stop) =>
                {
                    string path = Path.Combine(SavedOf(root), upload.Metadata["filename"]);
                    bool overwrite = upload.Metadata.ContainsKey("overwrite");
                    await upload.SaveAsync(path, new SaveBodyOptions { Overwrite = overwrite }, stop);
                    if (upload.HttpContext.Request.Headers.ContainsKey("X-Die"))
                    {
                        Process.GetCurrentProcess().Kill();
                        await Task.Delay(Timeout.Infinite, stop);
                    }
                },
            },
            port: port);
        await Console.Error.WriteLineAsync(server.Address.Port.ToString(CultureInfo.InvariantCulture));
        await Task.Delay(Timeout.Infinite);
    }
}
