using System.Buffers.Binary;
using Microsoft.AspNetCore.Http;
using Pipelines.File.AspNetCore;

namespace FileDevicesChild;

/// <summary>Uploads that are saved: whole or not at all, and one that breaks off leaves the old file.</summary>
internal sealed class CrashUploads(string folder, ExpectedState state) : ICrashFeature
{
    private const int Files = 5;

    private readonly string _folder = Directory.CreateDirectory(Path.Combine(folder, "uploaded")).FullName;

    public Task CheckAsync(bool isLast)
    {
        for (int file = 0; file < Files; file++)
        {
            string path = Path.Combine(_folder, $"{file}");
            byte[] content = File.Exists(path) ? File.ReadAllBytes(path) : [];
            long version = content.Length >= sizeof(int) ? BinaryPrimitives.ReadInt32LittleEndian(content) : -1;
            WrongStateException.Demand(
                File.Exists(path) ? state.Allows($"upload-{file}", version) && content.AsSpan().SequenceEqual(VersionOf((int)version))
                    : state.LastDone($"upload-{file}") < 0,
                $"uploaded/{file}: {content.Length} bytes, version {version}; {state.LastDone($"upload-{file}")} is done, "
                    + $"{state.LastBegun($"upload-{file}")} begun.");
        }

        foreach (string path in Directory.GetFiles(_folder, ".pipelines-file-*", new EnumerationOptions { AttributesToSkip = 0 }))
        {
            File.Delete(path);
        }

        return Task.CompletedTask;
    }

    public async Task RunAsync(Random random)
    {
        while (true)
        {
            int file = random.Next(Files);
            string subject = $"upload-{file}";
            int version = (int)state.LastBegun(subject) + 1;
            byte[] content = VersionOf(version);
            bool breaksOff = random.Next(6) == 0;
            state.Begin(subject, version);
            DefaultHttpContext context = new();
            context.Request.Body = breaksOff ? new BreakingStream(content, content.Length / 2) : new MemoryStream(content);
            try
            {
                await context.Request.SaveBodyAsync(Path.Combine(_folder, $"{file}"), new() { Durable = random.Next(3) == 0 });
                WrongStateException.Demand(!breaksOff, "An upload that broke off was saved.");
                state.Done(subject, version);
            }
            catch (IOException) when (breaksOff)
            {
                state.Drop(subject, version);
            }
        }
    }

    private static byte[] VersionOf(int version)
    {
        byte[] content = new byte[sizeof(int) + (int)(version * 104_729L % 300_000)];
        BinaryPrimitives.WriteInt32LittleEndian(content, version);
        Pattern.Fill(content.AsSpan(sizeof(int)), version);
        return content;
    }
}
