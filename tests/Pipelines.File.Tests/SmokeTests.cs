using System.IO.Pipelines;
using Pipelines.File;

namespace FilePipelinesTests;

public sealed class SmokeTests
{
    [Fact]
    public async Task ReadAsync_SmallFile_ReturnsItsBytesAndThenTheEnd()
    {
        string path = Path.GetTempFileName();
        await File.WriteAllTextAsync(path, "hello", TestContext.Current.CancellationToken);
        PipeReader reader = PipeReader.Create(path);
        ReadResult result = await reader.ReadAsync(TestContext.Current.CancellationToken);
        Assert.Equal(5, result.Buffer.Length);
        reader.AdvanceTo(result.Buffer.End);
        Assert.True((await reader.ReadAsync(TestContext.Current.CancellationToken)).IsCompleted);
        await reader.CompleteAsync();
        File.Delete(path);
    }
}
