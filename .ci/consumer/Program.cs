// What a stranger writes first with each package. .ci/run builds it from the packages and nothing else.
// Arguments: a folder, and the documentation of Pipelines.File.
using System.Buffers;
using System.IO.Pipelines;
using System.Reflection;
using System.Security.Cryptography;
using System.Text;
using System.Xml.Linq;
using Pipelines.File;
using Pipelines.File.Testing;

string folder = args[0];
int wrong = 0;
Check("compiled ahead of time for the runtime that it runs on", typeof(FilePipeReader).Assembly.Location.Contains("/runtimes/linux-"));
await WriteAndReadAsync(Path.Combine(folder, "numbers.bin"));
LookAtDocumentation(args[1]);
await SendAndReceiveAsync();
await BuildAndParseAsync();
await FollowAsync(Path.Combine(folder, "followed.log"));
await AppendAsync(Path.Combine(folder, "journal"));
Console.WriteLine(wrong == 0 ? "all is right" : $"{wrong} are wrong");

void Check(string what, bool isRight)
{
    wrong += isRight ? 0 : 1;
    Console.WriteLine($"{(isRight ? "right" : "WRONG")}: {what}");
}

async Task WriteAndReadAsync(string path)
{
    PipeWriter writer = PipeWriter.Create(path);
    for (int i = 0; i < 300_000; i++)
    {
        BitConverter.TryWriteBytes(writer.GetSpan(4), i);
        writer.Advance(4);
        if (i % 1000 == 0)
        {
            await writer.FlushAsync();
        }
    }

    await writer.CompleteAsync();
    byte[] content = File.ReadAllBytes(path);
    Check("1,200,000 bytes are written", content.Length == 1_200_000 && BitConverter.ToInt32(content.AsSpan(^4..)) == 299_999);
    foreach (PipeReader reader in new[] { PipeReader.Create(path), FilePipeReader.Create(path) })
    {
        using IncrementalHash hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        ReadResult result;
        do
        {
            result = await reader.ReadAsync();
            foreach (ReadOnlyMemory<byte> memory in result.Buffer)
            {
                hash.AppendData(memory.Span);
            }

            reader.AdvanceTo(result.Buffer.End);
        }
        while (!result.IsCompleted);
        await reader.CompleteAsync();
        Check("they are read", reader is FilePipeReader && hash.GetHashAndReset().AsSpan().SequenceEqual(SHA256.HashData(content)));
    }
}

// What an IDE shows is about what one can use. A documentation has a dot in front of a nested type, `1 behind a generic one, and
// ``1 behind a generic method.
void LookAtDocumentation(string path)
{
    Dictionary<string, Type> types = typeof(FilePipeReader).Assembly.GetTypes().ToDictionary(type => type.FullName!.Replace('+', '.'));
    string[] ids = [.. XDocument.Load(path).Descendants("member").Select(member => (string)member.Attribute("name")!)
        .Where(id => !id.Contains("<G>$"))];
    Check("there is a documentation", ids.Length > 100);
    foreach (string id in ids)
    {
        string name = id[2..].Split('(')[0].Split("``")[0].Replace(".#ctor", "..ctor");
        int dot = name.EndsWith("..ctor") ? name.Length - 6 : name.LastIndexOf('.');
        Type? type = types.GetValueOrDefault(id[0] == 'T' ? name : name[..dot]);
        if (type is not { IsVisible: true } || (id[0] != 'T' && !type.GetMember(name[(dot + 1)..], (BindingFlags)0x3C).Any(IsVisible)))
        {
            Check($"{id} is documented, and can be used", false);
        }
    }

    static bool IsVisible(MemberInfo member) => member switch
    {
        PropertyInfo property => property.GetAccessors(nonPublic: true).Any(IsVisible),
        MethodBase method => method.IsPublic || method.IsFamily || method.IsFamilyOrAssembly,
        FieldInfo field => field.IsPublic,
        _ => true,
    };
}

// A server that sends and receives a file, asked by its own program.
async Task SendAndReceiveAsync()
{
    await using WebApplication app = WebApplication.Create();
    app.Urls.Add("http://127.0.0.1:0");
    app.UseFilePipelines();
    app.MapGet("/{name}", (string name) => Results.File(Path.Combine(folder, name)));
    app.MapPut("/{name}", async (string name, HttpRequest request) => await request.SaveBodyAsync(Path.Combine(folder, name)));
    await app.StartAsync();
    using HttpClient client = new() { BaseAddress = new Uri(app.Urls.Single()) };
    byte[] sent = RandomNumberGenerator.GetBytes(1_000_000);
    string answer = await (await client.PutAsync("/f.bin", new ByteArrayContent(sent))).Content.ReadAsStringAsync();
    byte[] saved = File.ReadAllBytes(Path.Combine(folder, "f.bin"));
    Check("a file is received", answer.Contains("\"length\":1000000,") && sent.AsSpan().SequenceEqual(saved));
    byte[] received = await client.GetByteArrayAsync("/f.bin");
    Check("it is sent", sent.AsSpan().SequenceEqual(received));
    await app.StopAsync();
}

// A stream and its binary content, read by the parser of a test.
async Task BuildAndParseAsync()
{
    using PooledMemoryStream stream = new();
    stream.WriteInt32LittleEndian(42);
    stream.WriteString("text");
    TestPipeReader reader = new(stream.ToArray()) { SegmentSize = 1 };
    SequenceReader<byte> content = new((await reader.ReadAsync()).Buffer);
    Check("content is built and parsed",
        content.TryReadInt32LittleEndian(out int number) && content.TryReadString(out string? text) && number == 42 && text == "text");
}

// A log that is read, rotated, and read on from the checkpoint.
async Task FollowAsync(string log)
{
    for (int round = 0; round < 2; round++)
    {
        await File.AppendAllTextAsync(log, $"{round} one\n{round} two\n");
        CheckpointFile position = await CheckpointFile.OpenAsync(log + ".position");
        LogFollower follower = new(log, new LogFollowerOptions { Checkpoints = position.Checkpoints });
        await foreach (FollowedBatch batch in follower.ReadBatchesAsync(2, 1024, TimeSpan.FromSeconds(10)))
        {
            Check("two lines are followed", batch.Lines.Select(line => line.ToString()).SequenceEqual([$"{round} one", $"{round} two"]));
            await position.SaveAsync(batch);
            break;
        }

        File.Move(log, log + "." + (2 - round));
    }
}

async Task AppendAsync(string journalFolder)
{
    await using (Journal journal = await Journal.OpenAsync(journalFolder))
    {
        await Task.WhenAll(Enumerable.Range(0, 100).Select(i => journal.AppendAsync(Encoding.UTF8.GetBytes($"record {i}")).AsTask()));
    }

    long next = 40;
    await foreach (JournalBatch batch in JournalReader.Open(journalFolder).ReadBatchesAsync(from: 40))
    {
        Check("records follow on each other", batch.FirstSequence == next);
        next = batch.NextSequence;
    }

    Check("all records are read", next == 100);
}
