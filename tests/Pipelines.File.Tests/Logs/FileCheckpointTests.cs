using System.Text.Json;
using System.Text.Json.Serialization;

namespace FilePipelines.Tests;

public sealed partial class FileCheckpointTests
{
    private const string Text = "fe00000000:c12b8d:18ea2afc0e806c22@13";

    private static readonly FileCheckpoint s_checkpoint = new(FileIdentity.Parse("fe00000000:c12b8d:18ea2afc0e806c22"), 13);

    [Fact]
    public void ToString_AndParse_AreTheWayThereAndBack()
    {
        Assert.Equal(Text, s_checkpoint.ToString());
        Assert.Equal(Text, $"{s_checkpoint}");
        Assert.Equal(s_checkpoint, FileCheckpoint.Parse(Text, null));
        Assert.Equal(s_checkpoint, FileCheckpoint.Parse(Text + "\n", null));
        Assert.Equal(s_checkpoint, FileCheckpoint.Parse(Text + "\r\n", null));
        Assert.True(FileCheckpoint.TryParse(Text, out FileCheckpoint parsed));
        Assert.Equal(s_checkpoint, parsed);
        FileCheckpoint longest = new(
            FileIdentity.Parse(new string('f', 16) + ":" + new string('f', 32) + ":7" + new string('f', 15)), long.MaxValue);
        Assert.Equal(longest, FileCheckpoint.Parse(longest.ToString(), null));
    }

    [Fact]
    public void ContentHash_IsInTheText_AndBelongsToTheOffset()
    {
        const string WithHash = Text + "#2:00ff456789abcdef";
        FileCheckpoint checkpoint = s_checkpoint with { ContentHash = 0xff456789abcdef };
        Assert.Equal(WithHash, checkpoint.ToString());
        Assert.Equal(checkpoint, FileCheckpoint.Parse(WithHash, null));
        Assert.Equal(0ul, (checkpoint with { Offset = 14 }).ContentHash);
    }

    [Fact]
    public void Default_IsNoCheckpoint()
    {
        Assert.Throws<InvalidOperationException>(() => default(FileCheckpoint).ToString());
        Assert.Throws<InvalidOperationException>(() => $"{default(FileCheckpoint)}");
        Assert.False(FileCheckpoint.TryParse("0:0:0@0", out _));
        Dictionary<string, FileCheckpoint> unset = new() { ["log"] = default };
        Assert.Throws<InvalidOperationException>(() => JsonSerializer.Serialize(
            unset, CheckpointContext.Default.DictionaryStringFileCheckpoint));
    }

    [Theory]
    [InlineData("fe00000000:c12b8d:18ea2afc0e806c22@13#1:0123456789abcdef")]
    [InlineData("fe00000000:c12b8d:18ea2afc0e806c22@13#2:0123456789abcde")]
    [InlineData("fe00000000:c12b8d:18ea2afc0e806c22@13#2:0000000000000000")]
    [InlineData("#2:0123456789abcdef")]
    [InlineData(null)]
    [InlineData("")]
    [InlineData("13")]
    [InlineData("fe00000000:c12b8d:18ea2afc0e806c22")]
    [InlineData("fe00000000:c12b8d:18ea2afc0e806c22@")]
    [InlineData("fe00000000:c12b8d:18ea2afc0e806c22@-1")]
    [InlineData("fe00000000:c12b8d:18ea2afc0e806c22@1 ")]
    [InlineData("fe00000000:c12b8d:18ea2afc0e806c22@1\0")]
    [InlineData("fe00000000:c12b8d:18ea2afc0e806c22@9223372036854775808")]
    [InlineData("fe00000000:c12b8d@1")]
    public void TryParse_WhatIsNoCheckpoint_IsRefused(string? text)
    {
        Assert.False(FileCheckpoint.TryParse(text, out FileCheckpoint parsed));
        Assert.Equal(default, parsed);
        if (text is not null)
        {
            Assert.Throws<FormatException>(() => FileCheckpoint.Parse(text, null));
        }
    }

    [Fact]
    public void Offset_ThatIsNegative_Throws()
    {
        Assert.Throws<ArgumentOutOfRangeException>("Offset", () => new FileCheckpoint(default, -1));
        Assert.Throws<ArgumentOutOfRangeException>("Offset", () => s_checkpoint with { Offset = -1 });
    }

    [Fact]
    public void Json_OfAGeneratedContext_IsAString()
    {
        string json = JsonSerializer.Serialize(
            new Dictionary<string, FileCheckpoint> { ["log"] = s_checkpoint }, CheckpointContext.Default.DictionaryStringFileCheckpoint);
        Assert.Equal($$"""{"log":"{{Text}}"}""", json);
        Assert.Equal(s_checkpoint, JsonSerializer.Deserialize(json, CheckpointContext.Default.DictionaryStringFileCheckpoint)!["log"]);
    }

    [Theory]
    [InlineData("""{"log":"13"}""")]
    [InlineData("""{"log":13}""")]
    [InlineData("""{"log":null}""")]
    public void Json_ThatIsNoCheckpoint_Throws(string json)
        => Assert.Throws<JsonException>(() => JsonSerializer.Deserialize(json, CheckpointContext.Default.DictionaryStringFileCheckpoint));

    [JsonSerializable(typeof(Dictionary<string, FileCheckpoint>))]
    private sealed partial class CheckpointContext : JsonSerializerContext;
}
