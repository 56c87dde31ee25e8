namespace FilePipelines.Tests;

/// <summary>Strings with a limit: what has not come yet is told from what is wrong.</summary>
public sealed class ReadStringTests
{
    [Theory]
    [InlineData(new byte[] { 3, 65, 66, 67 }, OperationStatus.Done, "ABC")]
    [InlineData(new byte[] { 0 }, OperationStatus.Done, "")]
    [InlineData(new byte[] { 3, 65, 66 }, OperationStatus.NeedMoreData, null)]
    [InlineData(new byte[] { }, OperationStatus.NeedMoreData, null)]
    [InlineData(new byte[] { 0x80 }, OperationStatus.NeedMoreData, null)]
    [InlineData(new byte[] { 0x80, 0x01 }, OperationStatus.InvalidData, null)]
    [InlineData(new byte[] { 11 }, OperationStatus.InvalidData, null)]
    [InlineData(new byte[] { 10 }, OperationStatus.NeedMoreData, null)]
    [InlineData(new byte[] { 0xFF, 0xFF, 0xFF, 0xFF, 0x0F }, OperationStatus.InvalidData, null)]
    [InlineData(new byte[] { 0x80, 0x80, 0x80, 0x80, 0x80 }, OperationStatus.InvalidData, null)]
    public void ReadString_WithALimit_TellsWhatIsMissingFromWhatIsWrong(byte[] bytes, OperationStatus expected, string? value)
    {
        SequenceReader<byte> reader = new(new ReadOnlySequence<byte>(bytes));
        Assert.Equal(expected, reader.ReadString(maxBytes: 10, out string? read));
        Assert.Equal(value, read);
        Assert.Equal(expected == OperationStatus.Done ? bytes.Length : 0, reader.Consumed);
    }
}
