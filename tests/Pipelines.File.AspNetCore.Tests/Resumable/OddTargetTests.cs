using System.Diagnostics;
using Pipelines.File.AspNetCore;

namespace FilePipelines.AspNetCore.Tests.Resumable;

/// <summary>Uploads whose name, or whose parts, are not what they should be.</summary>
public sealed class OddTargetTests : UploadsInAFolder
{
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    [Fact]
    public async Task Fifo_OfTheNameOfAnUpload_IsNotReplaced()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "It calls mkfifo.");
        using Process made = Process.Start("mkfifo", Saved);
        await made.WaitForExitAsync(_stop);
        Exception? error = null;
        Server = await TusServer.StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,
            OnCompletedAsync = async (upload, stop) =>
            {
                error = await Record.ExceptionAsync(() => upload.SaveAsync(Saved, cancellationToken: stop));
                await upload.SaveAsync(PathOf("other.bin"), cancellationToken: stop);
            },
        });
        Uri upload = await Server.CreateAsync(5);
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, "hello"u8.ToArray()).WaitAsync(Eventually.Limit, _stop)).Status);
        Assert.IsType<Pipelines.File.FileExistsException>(error);
        Assert.Equal(0, new FileInfo(Saved).Length);
        Assert.Equal("hello", await File.ReadAllTextAsync(PathOf("other.bin"), _stop));
    }

    [Fact]
    public async Task EmptyFile_OfTheNameOfAnUpload_IsReplaced()
    {
        await File.WriteAllTextAsync(Saved, "", _stop);
        Server = await TusServer.StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,
            OnCompletedAsync = async (upload, stop) => await upload.SaveAsync(Saved, cancellationToken: stop),
        });
        Uri upload = await Server.CreateAsync(5);
        Assert.Equal(204, (await Server.PatchAsync(upload, 0, "hello"u8.ToArray())).Status);
        Assert.Equal("hello", await File.ReadAllTextAsync(Saved, _stop));
    }

    [Fact]
    public async Task FinalUpload_WhosePartIsRemovedBeforeItIsRead_Is400_AndLeavesNothing()
    {
        Server = await TusServer.StartAsync(new ResumableUploadOptions
        {
            Folder = Folder,

            // Before the parts are read, and after they were looked at.
            OnRequestAsync = (upload, _) =>
            {
                if (!upload.IsPartial && upload.HttpContext.Request.Headers["Upload-Concat"].Count > 0)
                {
                    Array.ForEach(Directory.GetFiles(Folder), File.Delete);
                }

                return ValueTask.CompletedTask;
            },
        });
        Uri part = await Server.CreateAsync(5, ("Upload-Concat", "partial"));
        Assert.Equal(204, (await Server.PatchAsync(part, 0, "hello"u8.ToArray())).Status);
        TusAnswer answer = await Server.SendAsync("POST", Server.Uploads, null, ("Upload-Concat", $"final;{part.AbsolutePath}"));
        Assert.Equal(400, answer.Status);
        Assert.Empty(Directory.GetFiles(Folder));
    }
}
