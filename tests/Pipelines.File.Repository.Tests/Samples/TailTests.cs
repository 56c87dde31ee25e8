using System.Runtime.InteropServices;

namespace FilePipelines.Repository.Tests;

/// <summary>samples/Tail, as a process: what it prints, and what it goes on with.</summary>
public sealed partial class TailTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly List<Process> _started = [];
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose()
    {
        // Those of a test that has failed would follow for ever.
        foreach (Process one in _started)
        {
            one.Kill();
            one.Dispose();
        }

        _folder.Dispose();
    }

    [Fact]
    public async Task SeveralFilesAndAPattern_LinesComeWithTheirNames()
    {
        ChildProcess.SkipUnlessLinux();
        using GrowingFile one = new(_folder.File("one"), "1\n2\n3\n");
        Directory.CreateDirectory(_folder.File("logs"));
        Process tail = Start($"-n 2 one 'logs/*.log'");
        Assert.Equal("one: 2", await LineAsync(tail));
        Assert.Equal("one: 3", await LineAsync(tail));
        using GrowingFile later = new(_folder.File("logs/later.log"), "from the beginning\n");
        Assert.Equal("logs/later.log: from the beginning", await LineAsync(tail));
        one.Append("half a ");
        later.Append("whole\n");
        Assert.Equal("logs/later.log: whole", await LineAsync(tail));
        one.Append("line\n");
        Assert.Equal("one: half a line", await LineAsync(tail));
        one.Append("of the old\n");
        File.Move(one.Path, one.Path + ".1");
        one.Reopen();
        one.Append("of the new\n");
        Assert.Equal("one: of the old", await LineAsync(tail));
        Assert.Equal("one: of the new", await LineAsync(tail));
        Assert.Equal(143, await EndAsync(tail));
    }

    [Theory]
    [InlineData("none/log"), InlineData("none/*g")]
    public async Task FileIsNotThereYet_IsWaitedFor(string name)
    {
        ChildProcess.SkipUnlessLinux();
        Process tail = Start("--no-prefix " + name);
        Assert.Equal($"Tail: waiting for '{name}'", await GrowingFile.Bounded(tail.StandardError.ReadLineAsync(_stop)));
        Directory.CreateDirectory(_folder.File("none"));
        using GrowingFile file = new(_folder.File("none/log"), "first\n");
        Assert.Equal("first", await LineAsync(tail));
        Assert.Equal(143, await EndAsync(tail));
    }

    [Fact]
    public async Task Checkpoint_RotatedTwiceWhileItIsDown_EveryLineComesOnce()
    {
        ChildProcess.SkipUnlessLinux();
        using GrowingFile file = new(_folder.File("log"), "1\n2\n");
        Process tail = Start("--no-prefix --checkpoint state log");
        Assert.Equal("1", await LineAsync(tail));
        Assert.Equal("2", await LineAsync(tail));
        Assert.Equal(143, await EndAsync(tail));

        file.Append("3\n");
        File.Move(file.Path, file.Path + ".2");
        file.Reopen();
        file.Append("4\n");
        File.Move(file.Path, file.Path + ".1");
        file.Reopen();
        file.Append("5\n");
        tail = Start("--no-prefix --checkpoint state log");
        for (int i = 3; i <= 5; i++)
        {
            Assert.Equal($"{i}", await LineAsync(tail));
        }

        file.Append("6\n");
        Assert.Equal("6", await LineAsync(tail));
        Assert.Equal(143, await EndAsync(tail));
    }

    [Theory]
    [InlineData("", "Tail: which file?")]
    [InlineData("--what log", "Tail: '--what' is no argument")]
    [InlineData("-n x log", "Tail: 'x' is no value for -n")]
    [InlineData("--checkpoint", "Tail: --checkpoint needs a value")]
    [InlineData("'*/log'", "Tail: '*/log'")]
    [InlineData("--checkpoint log log", "holds no checkpoints")]
    [InlineData(".", "Tail: Access to the path")]
    public async Task Arguments_ThatItCannotFollow_AreRefusedInOneLine(string arguments, string message)
    {
        ChildProcess.SkipUnlessLinux();
        _folder.File("log", "no JSON"u8.ToArray());
        Process tail = Start(arguments);
        Task<string> error = tail.StandardError.ReadToEndAsync(_stop);
        await GrowingFile.Bounded(tail.WaitForExitAsync(_stop));
        Assert.Equal(2, tail.ExitCode);
        Assert.Contains(message, Assert.Single((await error).Split('\n', StringSplitOptions.RemoveEmptyEntries)), StringComparison.Ordinal);
    }

    private static async Task<string?> LineAsync(Process tail)
        => await GrowingFile.Bounded(tail.StandardOutput.ReadLineAsync(TestContext.Current.CancellationToken));

    /// <summary>
    /// Ends it in order by SIGTERM. A test run in the background of a script has SIGINT ignored, and its children inherit that: Ctrl-C is
    /// checked by .ci/run.
    /// </summary>
    private static async Task<int> EndAsync(Process tail)
    {
        _ = Kill(tail.Id, 15);
        await GrowingFile.Bounded(tail.WaitForExitAsync(TestContext.Current.CancellationToken));
        return tail.ExitCode;
    }

    [LibraryImport("libc", EntryPoint = "kill")]
    private static partial int Kill(int process, int signal);

    // The shell becomes the program, so that signals go there.
    private Process Start(string arguments)
    {
        Process tail = ChildProcess.Start(
            $"cd '{_folder.Path}' && exec dotnet '{Path.Combine(AppContext.BaseDirectory, "Tail.dll")}' {arguments}");
        _started.Add(tail);
        return tail;
    }
}
