using Microsoft.AspNetCore.Http;
using Pipelines.File.AspNetCore;

namespace FilePipelines.Devices.Child;

/// <summary>Uploads that are saved: whole or not at all, and one that breaks off leaves the old file.</summary>
internal sealed class CrashUploads(string folder, ExpectedState state) : ICrashFeature
{
    private const int Files = 5;

    private readonly VersionedFiles _files = new(Path.Combine(folder, "uploaded"), "upload", Files, state, VersionOf);

    public Task CheckAsync(bool isLast)
    {
        _files.Check();
        return Task.CompletedTask;
    }

    public async Task RunAsync(Random random)
    {
        while (true)
        {
            int file = random.Next(Files);
            string subject = _files.SubjectOf(file);
            bool breaksOff = random.Next(6) == 0;
            (int version, byte[] content) = _files.Begin(file);
            DefaultHttpContext context = new();
            context.Request.Body = breaksOff ? new BreakingStream(content, content.Length / 2) : new MemoryStream(content);
            try
            {
                await context.Request.SaveBodyAsync(_files.PathOf(file), new() { Durable = random.Next(3) == 0 });
                WrongStateException.Demand(!breaksOff, "An upload that broke off was saved.");
                state.Done(subject, version);
            }
            catch (IOException) when (breaksOff)
            {
                state.Drop(subject, version);
            }
        }
    }

    private static byte[] VersionOf(int file, int version) => VersionedFiles.Make(version, (int)(version * 104_729L % 300_000), version);
}
