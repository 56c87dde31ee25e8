using Microsoft.AspNetCore.Http;
using Pipelines.File.AspNetCore;

namespace FilePipelines.Devices.Tests;

/// <summary>Uploads that are saved, several at once: to new names, and over old ones.</summary>
internal sealed class Uploads(bool isDurable) : Workload
{
    private const int Clients = 3;
    private const int UploadsEach = 40;

    // Every twentieth upload of a client replaces its first one, for which it waits until the next second.
    private const int Again = 20;

    internal override Task RunAsync(string folder, Acknowledge acknowledge, Random random)
        => Task.WhenAll(Enumerable.Range(0, Clients).Select(client => Task.Run(async () =>
        {
            for (int i = 0; i < UploadsEach; i++)
            {
                string name = NameOf(client, i);
                DefaultHttpContext context = new();
                context.Request.Body = new MemoryStream(Pattern.Version((i * Clients) + client));
                await context.Request.SaveBodyAsync(Path.Combine(folder, name), new() { Durable = isDurable });
                acknowledge(name, i);
            }
        })));

    internal override Task CheckAsync(string folder, IReadOnlyDictionary<string, long> promises)
    {
        foreach ((string name, long promised) in promises)
        {
            int client = name[0] - '0';
            byte[] content = Read(Path.Combine(folder, name));
            bool isRight = Enumerable.Range((int)promised, UploadsEach - (int)promised).Where(i => NameOf(client, i) == name)
                .Any(i => content.AsSpan().SequenceEqual(Pattern.Version((i * Clients) + client)));
            Demand(isRight, $"Upload {promised} was saved as {name}; the {content.Length} bytes there are neither it nor a later one.");
        }

        return Task.CompletedTask;
    }

    private static string NameOf(int client, int upload) => $"{client}-{(upload % Again == 0 ? 0 : upload)}";
}
