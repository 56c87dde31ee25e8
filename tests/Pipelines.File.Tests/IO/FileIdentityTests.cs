namespace FilePipelines.Tests;

public sealed class FileIdentityTests : FileTests
{
    [Fact]
    public void Identity_OfAFileUnderAnotherName_IsTheSame()
    {
        string path = _folder.File("f", [1]);
        FileIdentity before;
        using (FilePipeReader reader = FilePipeReader.Create(path))
        {
            before = reader.Identity;
        }

        File.Move(path, _folder.File("other"));
        using FilePipeReader renamed = FilePipeReader.Create(_folder.File("other"));
        Assert.Equal(before, renamed.Identity);
        Assert.NotEqual(default, renamed.Identity);
        Assert.True(FileIdentity.TryGet(_folder.File("other"), out FileIdentity found));
        Assert.Equal(before, found);
        Assert.Equal(before.GetHashCode(), found.GetHashCode());
    }

    [Fact]
    public void Identity_OfACopy_IsAnother()
    {
        string path = _folder.File("f", [1]);
        File.Copy(path, _folder.File("copy"));
        using FilePipeReader reader = FilePipeReader.Create(path);
        using FilePipeReader copy = FilePipeReader.Create(_folder.File("copy"));
        Assert.NotEqual(reader.Identity, copy.Identity);
    }

    [Fact]
    public void Identity_OfTheNextFileOfTheSameNumber_IsAnother()
    {
        Assert.SkipUnless(OperatingSystem.IsLinux(), "Other systems do not give numbers out again so soon.");
        List<FileIdentity> identities = [];
        for (int i = 0; i < 20; i++)
        {
            string path = _folder.File("f", [1]);
            Assert.True(FileIdentity.TryGet(path, out FileIdentity identity));
            Assert.SkipWhen(identity.Created == 0, "This file system does not tell when a file was made.");
            identities.Add(identity);
            File.Delete(path);
            Thread.Sleep(20);
        }

        Assert.Equal(20, identities.Distinct().Count());
    }

    [Fact]
    public void Identity_AskedByTwoThreadsForTheFirstTime_IsWhole()
    {
        const int Readers = 100;
        string path = _folder.File("f", [1]);
        Assert.SkipUnless(FileIdentity.TryGet(path, out FileIdentity identity), "This system does not tell.");
        int different = 0;

        // An open takes a millisecond under Wine.
        int rounds = OperatingSystem.IsWindows() ? 20 : 1000;
        for (int round = 0; round < rounds && different == 0; round++)
        {
            FilePipeReader[] readers = [.. Enumerable.Range(0, Readers).Select(_ => FilePipeReader.Create(path))];
            Parallel.For(0, 2, new ParallelOptions { MaxDegreeOfParallelism = 2 }, _ =>
            {
                foreach (FilePipeReader reader in readers)
                {
                    if (reader.Identity != identity)
                    {
                        Interlocked.Increment(ref different);
                    }
                }
            });
            foreach (FilePipeReader reader in readers)
            {
                reader.Dispose();
            }
        }

        Assert.Equal(0, different);
    }

    [Fact]
    public void TryGet_NoSuchFile_IsFalse()
    {
        Assert.False(FileIdentity.TryGet(_folder.File("none"), out FileIdentity identity));
        Assert.Equal(default, identity);
        Assert.Throws<ArgumentException>(() => FileIdentity.TryGet("", out _));
    }

    [Fact]
    public void Parse_OfItsText_IsTheSame()
    {
        using FilePipeReader reader = FilePipeReader.Create(_folder.File("f", [1]));
        string text = reader.Identity.ToString();
        Assert.Equal(reader.Identity, FileIdentity.Parse(text));
        Assert.True(FileIdentity.TryParse(text, out FileIdentity parsed));
        Assert.Equal(reader.Identity, parsed);
        FileIdentity largest = FileIdentity.Parse("ffffffffffffffff:ffffffffffffffffffffffffffffffff:ffffffffffffffff");
        Assert.Equal((ulong.MaxValue, UInt128.MaxValue, -1L), (largest.Volume, largest.Number, largest.Created));
        Assert.Equal(largest, FileIdentity.Parse($"{largest}"));
        Assert.Equal("0:0:0", default(FileIdentity).ToString());
    }

    [Theory]
    [InlineData("")]
    [InlineData("1:2")]
    [InlineData("1:2:3:4")]
    [InlineData("1:g:3")]
    [InlineData("1:-2:3")]
    [InlineData("12345678901234567:1:1")]
    [InlineData("1: 2:3")]
    [InlineData("1:2:3\0")]
    [InlineData("1\0:2:3")]
    [InlineData("1:2\0:3")]
    [InlineData("1:2:3\n")]
    [InlineData("+1:2:3")]
    [InlineData("1:0x2:3")]
    [InlineData("1:2:")]
    [InlineData("1:2:\u0663")]
    public void Parse_OfAnotherText_Throws(string text)
    {
        Assert.False(FileIdentity.TryParse(text, out FileIdentity identity));
        Assert.Equal(default, identity);
        Assert.Throws<FormatException>(() => FileIdentity.Parse(text));
        Assert.False(FileIdentity.TryParse(null, out _));
    }
}
