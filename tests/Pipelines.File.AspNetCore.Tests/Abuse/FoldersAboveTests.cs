using System.Runtime.InteropServices;

namespace FilePipelines.AspNetCore.Tests.Abuse;

/// <summary>The folders above that of uploads or of a cache, made where nothing takes rights away: with umask 0.</summary>
[Collection(nameof(AloneCollection))]
public sealed partial class FoldersAboveTests : InARoot
{
    private const UnixFileMode Own = UnixFileMode.UserRead | UnixFileMode.UserWrite | UnixFileMode.UserExecute;

    [Theory]
    [InlineData(""), InlineData("/")]
    public void Folders_ThatAreMade_AreNotForOthersToWriteTo(string end)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "It has no such modes.");
        uint before = SetMask(0);
        try
        {
            for (int maker = 0; maker < 2; maker++)
            {
                string above = Path.Combine(_root, $"{maker}"), next = Path.Combine(above, "next"), folder = Path.Combine(next, "folder");
                SharedFolderTests.Makers(folder + end)[maker](false);
                Assert.Equal(Own, File.GetUnixFileMode(folder));
                foreach (string path in new[] { above, next })
                {
                    Assert.Equal(default, File.GetUnixFileMode(path) & (UnixFileMode.GroupWrite | UnixFileMode.OtherWrite));
                }
            }
        }
        finally
        {
            _ = SetMask(before);
        }
    }

    [LibraryImport("libc", EntryPoint = "umask")]
    private static partial uint SetMask(uint mask);
}
