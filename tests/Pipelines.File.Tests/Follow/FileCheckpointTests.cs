using System.Text.Json;
using System.Text.Json.Serialization;
using Pipelines.File;

namespace FilePipelinesTests;

public sealed partial class FileCheckpointTests
{
    private const string Text = "fe00000000:c12b8d:18ea2afc0e806c22@13";

    private static readonly FileCheckpoint s_checkpoint = new(FileIdentity.Parse("fe00000000:c12b8d:18ea2afc0e806c22", null), 13);

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
            FileIdentity.Parse(new string('f', 16) + ":" + new string('f', 32) + ":7" + new string('f', 15), null), long.MaxValue);
        Assert.Equal(longest, FileCheckpoint.Parse(longest.ToString(), null));
    }

    [Theory]
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
