namespace FilePipelines.AspNetCore.Tests;

/// <summary>Which names of clients are those of one file in a folder.</summary>
public sealed class UploadFileNameTests
{
    [Theory]
    [InlineData("a")]
    [InlineData("report 2026 (final).pdf")]
    [InlineData("archive.tar.gz")]
    [InlineData("Grüße 😀.txt")]
    [InlineData("a..b")]
    [InlineData("console.log")]
    [InlineData("com10.txt")]
    [InlineData("~lock")]
    [InlineData("a%2fb")]
    public void IsValid_NameOfOneFile_IsTrue(string name) => Assert.True(UploadFileName.IsValid(name));

    [Theory]
    [InlineData(null)]
    [InlineData("")]
    [InlineData(".")]
    [InlineData("..")]
    [InlineData(".ssh")]
    [InlineData("../a")]
    [InlineData("a/b")]
    [InlineData("/etc/passwd")]
    [InlineData(@"a\b")]
    [InlineData(@"C:\a")]
    [InlineData("a.txt:stream")]
    [InlineData("a\0.txt")]
    [InlineData("a\nb")]
    [InlineData("a\u007F")]
    [InlineData("a?")]
    [InlineData("a.")]
    [InlineData("a ")]
    [InlineData(" ")]
    [InlineData("NUL")]
    [InlineData("nul.txt")]
    [InlineData("Com1")]
    [InlineData("lpt9.tar.gz")]
    [InlineData("aux .txt")]
    [InlineData("PRIVAT~1.TXT")]
    [InlineData("a\uFFFD")]
    public void IsValid_AnythingElse_IsFalse(string? name) => Assert.False(UploadFileName.IsValid(name));

    [Fact]
    public void IsValid_LengthAndHalvesOfPairs_AreThoseOfTheFileSystem()
    {
        Assert.True(UploadFileName.IsValid(new string('a', 255)));
        Assert.False(UploadFileName.IsValid(new string('a', 256)));
        Assert.False(UploadFileName.IsValid(new string('ü', 128)));
        Assert.False(UploadFileName.IsValid("a\uD83D"));
        Assert.False(UploadFileName.IsValid("\uDE00a"));
    }
}
