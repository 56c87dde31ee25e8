using System.Globalization;
using System.IO.Pipelines;
using System.Text.Json;
using System.Text.Json.Serialization;
using JsonLines;
using Pipelines.File;

// dotnet run -c Release --project samples/JsonLines -- [FILE]    FILE: one {"id":…,"kind":"…","amount":…} a line
if (args.Length > 1 || args is ["-h" or "--help"])
{
    TextWriter output = args.Length > 1 ? Console.Error : Console.Out;
    output.WriteLine("usage: JsonLines [FILE]    adds up the amounts of FILE, one {\"id\":1,\"kind\":\"sale\",\"amount\":2.50} a line, "
        + "or of 100,000 that it makes itself");
    return args.Length > 1 ? 2 : 0;
}

string? made = null;
try
{
    string path = args.Length > 0 ? args[0] : made = await MakeAsync();
    PipeReader reader = FilePipeReader.Create(path);
    long events = 0;
    decimal total = 0;
    await foreach (Event? e in JsonSerializer.DeserializeAsyncEnumerable(reader, EventContext.Default.Event, topLevelValues: true))
    {
        events++;
        total += e?.Amount ?? 0;
    }

    await reader.CompleteAsync();
    Console.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{events:N0} events, {total} in all"));
    return 0;
}
catch (Exception e) when (e is IOException or UnauthorizedAccessException or ArgumentException or JsonException)
{
    Console.Error.WriteLine($"JsonLines: {e.Message}");
    return 2;
}
finally
{
    if (made is not null)
    {
        File.Delete(made);
    }
}

// The other way round: the writer is an IBufferWriter<byte>, which is all that Utf8JsonWriter wants.
static async Task<string> MakeAsync()
{
    string path = Path.Combine(Path.GetTempPath(), $"jsonlines-{Guid.NewGuid():N}.ndjson");
    FilePipeWriter writer = FilePipeWriter.Create(path);
    await using (Utf8JsonWriter json = new(writer))
    {
        for (int id = 0; id < 100_000; id++)
        {
            JsonSerializer.Serialize(json, new Event(id, id % 3 == 0 ? "refund" : "sale", id % 1000 / 100m), EventContext.Default.Event);
            json.Flush();
            json.Reset();
            writer.GetSpan(1)[0] = (byte)'\n';
            writer.Advance(1);
            if (id % 100 == 0)
            {
                await writer.FlushAsync();
            }
        }
    }

    await writer.CompleteAsync();
    return path;
}

namespace JsonLines
{
    internal sealed record Event(long Id, string Kind, decimal Amount);

    [JsonSourceGenerationOptions(PropertyNamingPolicy = JsonKnownNamingPolicy.CamelCase)]
    [JsonSerializable(typeof(Event))]
    internal sealed partial class EventContext : JsonSerializerContext;
}
