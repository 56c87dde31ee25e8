using FilePipelinesChild;
using Pipelines.File.IO;

namespace FilePipelinesTests;

/// <summary>
/// <see cref="Pipelines.File.FileCaching.Direct"/> where the system's own calls fail: strace(1) makes them, in every thread by itself.
/// </summary>
[Trait("Category", StressTime.Category)]
public sealed class DirectSystemCallTests : IDisposable
{
    private const int Length = 16 * 1024 * 1024;
    private const int Block = DirectFile.LeastBlock;

    // What Pattern is not in any whole block.
    private const byte Old = 0xEE;

    private readonly TempFolder _folder = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public DirectSystemCallTests() => ChildProcess.SkipUnlessLinux("strace");

    public void Dispose() => _folder.Dispose();

    /// <summary>
    /// Four calls are under way, and whatever came before the first that fails is right. Behind bytes that have moved a call is made again,
    /// hence every +.
    /// </summary>
    [Theory]
    [InlineData("error=EIO:when=1+", 3)]
    [InlineData("error=EIO:when=3+", 3)]
    [InlineData("error=EINVAL:when=2+", 3)]
    [InlineData("error=EINTR:when=1+2", 0)]
    [InlineData("delay_enter=20000:when=2+3", 0)]
    public async Task Read_SystemCallInjected_EndsAsItShould(string injection, int expectedStatus)
    {
        string path = _folder.File("f", Pattern.Bytes(Length + 5));
        string output = await RunAsync("preadv", injection, expectedStatus, "directread", path, "4096");
        if (expectedStatus == 0)
        {
            Assert.Equal($"read {Length + 5}", output.Trim());
        }
        else
        {
            Assert.Contains(path, output, StringComparison.Ordinal);
        }
    }

    /// <summary>A file that grows is a prefix of what was written, whatever happens.</summary>
    [Theory]
    [InlineData("error=EIO:when=1+", 3)]
    [InlineData("error=EIO:when=4+", 3)]
    [InlineData("error=EINVAL:when=2+", 3)]
    [InlineData("error=ENOSPC:when=3+", 3)]
    [InlineData("error=EINTR:when=1+2", 0)]
    public async Task Write_SystemCallInjected_LeavesAPrefix(string injection, int expectedStatus)
    {
        string path = _folder.File("f");
        string output = await RunAsync("pwritev", injection, expectedStatus, "direct", path, $"{Length}", "3000001", "Written");
        byte[] content = await File.ReadAllBytesAsync(path, _stop);
        Assert.Equal(-1, Pattern.FirstDifference(content));
        Assert.True(expectedStatus == 0 ? content.Length == Length : output.Contains(path, StringComparison.Ordinal));
    }

    /// <summary>
    /// Four calls are under way over what is there: every block is the old one or the new one, and what a flush has promised is new.
    /// </summary>
    [Theory]
    [InlineData("error=EIO:when=2+", 3)]
    [InlineData("error=EINVAL:when=1+", 3)]
    [InlineData("error=EINTR:when=1+2", 0)]
    public async Task Overwrite_SystemCallInjected_TearsNoBlock(string injection, int expectedStatus)
    {
        byte[] old = new byte[Length];
        Array.Fill(old, Old);
        string path = _folder.File("f", old);
        string output = await RunAsync("pwritev", injection, expectedStatus, "directover", path, $"{Length}", $"{Length / 4}", "Written");
        byte[] content = await File.ReadAllBytesAsync(path, _stop);
        Assert.Equal(Length, content.Length);
        int promised = output.Split('\n').Where(static line => line.StartsWith("flushed ", StringComparison.Ordinal))
            .Select(static line => int.Parse(line.AsSpan("flushed ".Length), System.Globalization.CultureInfo.InvariantCulture))
            .LastOrDefault();
        for (int start = 0; start < Length; start += Block)
        {
            ReadOnlySpan<byte> block = content.AsSpan(start, Block);
            bool isNew = Pattern.FirstDifference(block, start) < 0;
            Assert.True(isNew || (start >= promised && expectedStatus != 0 && !block.ContainsAnyExcept(Old)),
                $"{start}, flushed {promised}");
        }
    }

    private async Task<string> RunAsync(string call, string injection, int expectedStatus, params string[] arguments)
    {
        string trace = _folder.File("trace");
        (int status, string output, string error) = await ChildProcess.RunAsync(
            $"strace -f -o '{trace}' -e trace={call} -e inject={call}:{injection} {ChildProcess.Command(arguments)}");
        Assert.SkipWhen(error.Contains("PTRACE", StringComparison.Ordinal), "strace may not trace here.");
        Assert.SkipWhen(output.Contains("O_DIRECT", StringComparison.Ordinal) && output.Contains("NotSupported", StringComparison.Ordinal),
            "No direct I/O here.");
        Assert.True(status == expectedStatus, $"{status}: {output}{error}");
        string traced = await File.ReadAllTextAsync(trace, _stop);
        Assert.True(traced.Contains("INJECTED", StringComparison.Ordinal) || traced.Contains("DELAYED", StringComparison.Ordinal), traced);
        return output;
    }
}
