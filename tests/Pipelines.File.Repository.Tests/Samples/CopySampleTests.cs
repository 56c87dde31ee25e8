using System.Security.Cryptography;
using CopySample;

namespace FilePipelines.Repository.Tests;

/// <summary>samples/Copy: files of every kind and length, and what is there before.</summary>
public sealed class CopySampleTests : IDisposable
{
    private readonly TempFolder _folder = new();
    private readonly Totals _totals = new();
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => _folder.Dispose();

    [Theory]
    [InlineData(0), InlineData(1), InlineData(256 * 1024), InlineData((256 * 1024) + 1), InlineData(1_000_000)]
    public async Task Copy_AnyLength_IsTheSame(int length)
    {
        byte[] content = RandomNumberGenerator.GetBytes(length);
        string from = _folder.File("from", content);
        File.SetLastWriteTimeUtc(from, DateTime.UnixEpoch.AddDays(1));
        string to = _folder.File("to", new byte[500_000]);
        Assert.Equal(Convert.ToHexStringLower(SHA256.HashData(content)), await CopyAsync(from, to));
        Assert.Equal(content, File.ReadAllBytes(to));
        Assert.Equal(DateTime.UnixEpoch.AddDays(1), File.GetLastWriteTimeUtc(to));
    }

    [Theory]
    [InlineData(10, 100), InlineData(10, 400_000), InlineData(100, 0), InlineData(400_000, 10)]
    public async Task Copy_LengthIsAnotherByNow_CopiesWhatThereIs(int before, int after)
    {
        FileInfo from = new(_folder.File("from", new byte[before]));
        Assert.Equal(before, from.Length);
        byte[] content = RandomNumberGenerator.GetBytes(after);
        _folder.File("from", content);
        await new FileCopier(SettingsOf(from.FullName, _folder.File("to")), _totals).CopyAsync(from, _folder.File("to"), _stop);
        Assert.Equal(content, File.ReadAllBytes(_folder.File("to")));
    }

    [Fact]
    public async Task Copy_Link_HasContentModeAndTimeOfWhatItLeadsTo()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Only administrators make links there, and there are no modes.");
        string from = _folder.File("from", [1, 2, 3]);
        File.SetUnixFileMode(from, UnixFileMode.UserRead);
        File.SetLastWriteTimeUtc(from, DateTime.UnixEpoch.AddDays(1));
        File.CreateSymbolicLink(_folder.File("link"), "from");
        await CopyAsync(_folder.File("link"), _folder.File("to"));
        Assert.Equal([1, 2, 3], File.ReadAllBytes(_folder.File("to")));
        Assert.Equal(UnixFileMode.UserRead, File.GetUnixFileMode(_folder.File("to")));
        Assert.Equal(DateTime.UnixEpoch.AddDays(1), File.GetLastWriteTimeUtc(_folder.File("to")));
    }

    [Fact]
    public async Task Copy_LinkToAFifo_IsPassedOver()
    {
        ChildProcess.SkipUnlessLinux("mkfifo");
        Assert.Equal(0, (await ChildProcess.RunAsync($"mkfifo '{_folder.File("fifo")}'")).ExitCode);
        File.CreateSymbolicLink(_folder.File("link"), "fifo");
        await Assert.ThrowsAsync<IOException>(
            () => Task.Run(() => CopyAsync(_folder.File("link"), _folder.File("to")), _stop).WaitAsync(Eventually.Limit, _stop));
    }

    [Fact]
    public async Task Copy_Canceled_LeavesWhatWasThere()
    {
        string from = _folder.File("from", new byte[100_000]);
        string to = _folder.File("to", [1]);
        FileCopier copier = new(SettingsOf(from, to), _totals);
        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => copier.CopyAsync(new FileInfo(from), to, new CancellationToken(canceled: true)));
        Assert.Equal([1], File.ReadAllBytes(to));
    }

    [Fact]
    public async Task CopyFolder_SomeNamesAreTaken_CopiesTheOthersAndTells()
    {
        Directory.CreateDirectory(_folder.File(Path.Combine("from", "a", "inner")));
        Directory.CreateDirectory(_folder.File(Path.Combine("from", "b")));
        Directory.CreateDirectory(_folder.File(Path.Combine("to", "file")));
        _folder.File(Path.Combine("from", "a", "inner", "1"), [1]);
        _folder.File(Path.Combine("from", "b", "2"), [2]);
        _folder.File(Path.Combine("from", "file"), [3]);
        _folder.File(Path.Combine("to", "a"), [4]);
        List<string> told = [];
        TreeCopier tree = new(SettingsOf(_folder.File("from"), _folder.File("to")), _totals);
        await tree.CopyAsync(Tell, _stop);
        Assert.Equal([2], File.ReadAllBytes(_folder.File(Path.Combine("to", "b", "2"))));
        Assert.Equal([4], File.ReadAllBytes(_folder.File(Path.Combine("to", "a"))));
        Assert.Equal(["b" + Path.DirectorySeparatorChar + "2"], tree.Hashes.Select(static file => file.Name));
        Assert.Equal((1, 2), (_totals.Files, _totals.Failed));
        Assert.Contains(told, message => message.Contains(_folder.File(Path.Combine("to", "a")), StringComparison.Ordinal));
        Assert.Contains(told, message => message.Contains(_folder.File(Path.Combine("to", "file")), StringComparison.Ordinal));

        // What was told is out of the way: only that is copied now.
        File.Delete(_folder.File(Path.Combine("to", "a")));
        await tree.CopyAsync(Tell, _stop);
        Assert.Equal([1], File.ReadAllBytes(_folder.File(Path.Combine("to", "a", "inner", "1"))));
        Assert.Equal((2, 1), (_totals.Files, _totals.Unchanged));

        void Tell(string message)
        {
            lock (told)
            {
                told.Add(message);
            }
        }
    }

    [Fact]
    public async Task CopyFolder_LinkToIt_HasItsModeAndTime()
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Only administrators make links there, and there are no modes.");
        const UnixFileMode Own = UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute;
        Directory.CreateDirectory(_folder.File("from"), Own);
        _folder.File("from/1", [1]);
        Directory.SetLastWriteTimeUtc(_folder.File("from"), DateTime.UnixEpoch.AddDays(1));
        File.CreateSymbolicLink(_folder.File("link"), "from");
        await new TreeCopier(SettingsOf(_folder.File("link"), _folder.File("to")), _totals).CopyAsync(static _ => { }, _stop);
        Assert.Equal([1], File.ReadAllBytes(_folder.File("to/1")));
        Assert.Equal(Own, File.GetUnixFileMode(_folder.File("to")));
        Assert.Equal(DateTime.UnixEpoch.AddDays(1), Directory.GetLastWriteTimeUtc(_folder.File("to")));
    }

    private static Settings SettingsOf(string from, string to) => new(from, to, Hash: true);

    private Task<string?> CopyAsync(string from, string to)
        => new FileCopier(SettingsOf(from, to), _totals).CopyAsync(new FileInfo(from), to, _stop);
}
