using Pipelines.File.CodeFixes;

namespace FilePipelines.Analyzers.Tests;

/// <summary>Each rule on what it is about, and on what looks alike and is right.</summary>
public sealed class AnalyzerTests
{
    [Theory]
    [InlineData("await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });\nwriter.Write(\"text\"u8);\n"
        + "await writer.FlushAsync();")]
    [InlineData("await using FilePipeWriter writer = await FilePipeWriter.OpenAsync(path, new FilePipeWriterOptions { Replace = true "
        + "}).ConfigureAwait(false);\nwriter.GetSpan(1);")]
    [InlineData("FilePipeWriterOptions options = new() { Replace = true };\n"
        + "using (FilePipeWriter writer = FilePipeWriter.Create(path, options))\n{\n    await reader.CopyToAsync(writer);\n}")]
    [InlineData("FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });\ntry\n{\n"
        + "    await System.Text.Json.JsonSerializer.SerializeAsync(writer, 5);\n}\nfinally\n{\n    await writer.DisposeAsync();\n}")]
    public async Task ReplaceNotCompleted_DisposedOnly_IsReported(string statements)
        => Assert.Equal(["PF0001 writer"], (await Compiled.DiagnoseAsync(statements)).Select(one => one[..13]));

    [Theory]
    [InlineData("await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });\nwriter.Write(\"text\"u8);\n"
        + "await writer.CompleteAsync();")]
    [InlineData("await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });\nif (path.Length > 3)\n{\n"
        + "    writer.Abort();\n}")]
    [InlineData("await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });\nawait OwnAsync(writer);")]
    [InlineData("await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });\nawait using Stream stream = "
        + "writer.AsStream();")]
    [InlineData("await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });\n"
        + "Func<ValueTask> end = () => writer.CompleteAsync();\nawait end();")]
    [InlineData("await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });\n"
        + "PipeWriter tapped = writer.Tap(_ => { });\nawait tapped.CompleteAsync();")]
    [InlineData("await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });\nawait "
        + "PipeTapExtensions.Tap(writer, _ => { }).CompleteAsync();")]
    [InlineData("await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });\n"
        + "List<PipeWriter> writers = new();\nwriters.Add(writer);\nawait writers[0].CompleteAsync();")]
    [InlineData("await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });\nProgram program = new();\n"
        + "Volatile.Write(ref program.Field, writer);\nawait program.Field!.CompleteAsync();")]
    [InlineData("await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = false });")]
    [InlineData("await using FilePipeWriter writer = FilePipeWriter.Create(path);")]
    [InlineData("new Program().Field = FilePipeWriter.Create(path, new() { Replace = true });")]
    [InlineData("FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true });\nnew Program().Field = writer;\n"
        + "using IDisposable? both = writer;")]
    public async Task ReplaceNotCompleted_CompletedOrPassedOn_IsNot(string statements)
        => Assert.Empty(await Compiled.DiagnoseAsync(statements));

    [Theory]
    [InlineData("List<ReadOnlySequence<byte>> lines = await reader.ReadLineSequencesAsync().ToListAsync();", "PF0002 ToListAsync")]
    [InlineData("List<ReadOnlySequence<byte>> lines = [];\n"
        + "await foreach (ReadOnlySequence<byte> line in reader.ReadLineSequencesAsync().ConfigureAwait(false))\n"
        + "{\n    lines.Add(line);\n}",
        "PF0002 line")]
    [InlineData("ReadOnlySequence<byte> last = default;\nawait foreach (var line in reader.ReadLineSequencesAsync())\n"
        + "{\n    last = line;\n}",
        "PF0002 line")]
    [InlineData("var lines = System.Threading.Channels.Channel.CreateUnbounded<ReadOnlySequence<byte>>();\n"
        + "await foreach (var line in reader.ReadLineSequencesAsync())\n{\n    lines.Writer.TryWrite(line);\n}", "PF0002 line")]
    [InlineData("var lines = System.Threading.Channels.Channel.CreateUnbounded<ReadOnlySequence<byte>>();\n"
        + "await foreach (var line in reader.ReadLineSequencesAsync())\n{\n    await lines.Writer.WriteAsync(line);\n}", "PF0002 line")]
    [InlineData("List<ReadOnlySequence<byte>> lines = [];\n"
        + "await foreach (var line in reader.ReadLineSequencesAsync().Where(line => !line.IsEmpty))\n{\n    lines.Add(line.Slice(1));\n}",
        "PF0002 line")]
    [InlineData("ReadOnlySequence<byte> header = await reader.ReadLineSequencesAsync(leaveOpen: true).Skip(1).FirstAsync();",
        "PF0002 FirstAsync")]
    [InlineData("await FindAsync();\nasync Task<ReadOnlySequence<byte>> FindAsync()\n{\n"
        + "    await foreach (var line in reader.ReadLineSequencesAsync())\n    {\n        return line;\n    }\n\n    return default;\n}",
        "PF0002 line")]
    [InlineData("var all = await reader.ReadLineBatchesAsync().ToArrayAsync();", "PF0002 ToArrayAsync")]
    [InlineData("var all = await new LogFollower(path).ReadLinesAsync().Take(5).ToListAsync();", "PF0002 ToListAsync")]
    [InlineData("var last = await JournalReader.Open(path).ReadBatchesAsync().LastAsync();", "PF0002 LastAsync")]
    [InlineData("List<LineBatch> batches = [];\nawait foreach (LineBatch batch in reader.ReadLineBatchesAsync())\n{\n"
        + "    batches.Add(batch);\n}", "PF0002 batch")]
    [InlineData("Queue<RecordBatch<int>> batches = [];\n"
        + "await foreach (var batch in reader.ReadRecordBatchesAsync<int>(Entry.TryTake))\n{\n    batches.Enqueue(batch);\n}",
        "PF0002 batch")]
    [InlineData("Queue<RecordBatch<int, EntryParser>> batches = [];\n"
        + "await foreach (var batch in reader.ReadRecordBatchesAsync<int, EntryParser>(default))\n{\n    batches.Enqueue(batch);\n}",
        "PF0002 batch")]
    [InlineData("var shipped = System.Threading.Channels.Channel.CreateBounded<FollowedBatch>(5);\n"
        + "await foreach (FollowedBatch batch in new LogFollower(path).ReadBatchesAsync(5, 5, TimeSpan.Zero))\n{\n"
        + "    await shipped.Writer.WriteAsync(batch);\n}", "PF0002 batch")]
    [InlineData("List<FollowedLine> lines = [];\n"
        + "await foreach (FollowedBatch batch in new LogFollower(path).ReadBatchesAsync(5, 5, TimeSpan.Zero))\n{\n"
        + "    lines.AddRange(batch.Lines);\n}", "PF0002 batch")]
    [InlineData("List<FollowedLine> lines = [];\n"
        + "await foreach (FollowedBatch batch in new LogFollower(path).ReadBatchesAsync(5, 5, TimeSpan.Zero))\n{\n"
        + "    foreach (FollowedLine line in batch.Lines)\n    {\n        lines.Add(line);\n    }\n}", "PF0002 line")]
    [InlineData("List<ReadOnlyMemory<byte>> lines = [];\nawait foreach (FollowedLine line in new LogFollower(path).ReadLinesAsync())\n{\n"
        + "    lines.Add(line.Bytes);\n}", "PF0002 line")]
    [InlineData("List<Task> tasks = [];\nawait foreach (JournalBatch batch in JournalReader.Open(path).ReadBatchesAsync())\n{\n"
        + "    tasks.Add(Task.Run(() => Console.WriteLine(batch.NextSequence)));\n}", "PF0002 batch")]
    [InlineData("await foreach (LineBatch batch in reader.ReadLineBatchesAsync())\n{\n"
        + "    _ = Task.Run(() => Console.WriteLine(batch.Count));\n}", "PF0002 batch")]
    [InlineData("await foreach (LineBatch batch in reader.ReadLineBatchesAsync())\n{\n"
        + "    ThreadPool.QueueUserWorkItem(_ => Console.WriteLine(batch.Count));\n}", "PF0002 batch")]
    public async Task BorrowedStored_InWhatOutlivesTheStep_IsReported(string statements, string expected)
        => Assert.Equal([expected], await Compiled.DiagnoseAsync(statements));

    [Theory]
    [InlineData("List<byte[]> lines = [];\nawait foreach (var line in reader.ReadLineSequencesAsync())\n{\n    lines.Add(line.ToArray());\n"
        + "    ReadOnlySequence<byte> same = line;\n    same = line;\n}")]
    [InlineData("int count = await reader.ReadLineSequencesAsync().CountAsync();")]
    [InlineData("await foreach (var line in reader.ReadLineSequencesAsync())\n{\n    List<ReadOnlySequence<byte>> lines = [];\n"
        + "    lines.Add(line);\n    ReadOnlySequence<byte>[] same = new ReadOnlySequence<byte>[1];\n    same[0] = line;\n"
        + "    Func<ReadOnlySequence<byte>> get = () => { return line; };\n}")]
    [InlineData("await foreach (var line in reader.ReadLineSequencesAsync())\n{\n"
        + "    Console.WriteLine(new Entry { Line = line }.Line.Length);\n}")]
    [InlineData("HashSet<string> lines = [];\nawait foreach (var line in reader.ReadLineSequencesAsync())\n"
        + "{\n    lines.Add(line.ToString());\n}")]
    [InlineData("List<LineBatch> batches = await reader.ReadLineBatchesAsync().Select(batch => batch.Copy()).ToListAsync();")]
    [InlineData("List<string> lines = await reader.ReadLinesAsync().ToListAsync();")]
    [InlineData("List<LineBatch> batches = [];\nawait foreach (LineBatch batch in reader.ReadLineBatchesAsync())\n{\n"
        + "    batches.Add(batch.Copy());\n}")]
    [InlineData("List<FollowedLine> lines = [];\nFileCheckpoint? last = null;\n"
        + "await foreach (FollowedBatch batch in new LogFollower(path).ReadBatchesAsync(5, 5, TimeSpan.Zero))\n{\n"
        + "    foreach (FollowedLine line in batch.Copy().Lines)\n    {\n        lines.Add(line);\n    }\n\n"
        + "    last = batch.Checkpoint;\n}")]
    [InlineData("await foreach (LineBatch batch in reader.ReadLineBatchesAsync())\n{\n    List<LineBatch> one = [batch];\n"
        + "    one.Add(batch);\n    await Task.Run(() => Console.WriteLine(batch.Count));\n"
        + "    Task own = Task.Run(() => Console.WriteLine(batch.Count));\n    await own;\n}")]
    public async Task BorrowedStored_Copied_IsNot(string statements) => Assert.Empty(await Compiled.DiagnoseAsync(statements));

    [Theory]
    [InlineData("ReadResult result = await reader.ReadAsync();\nreader.AdvanceTo(result.Buffer.End);\n"
        + "Console.WriteLine(result.Buffer.Length);", "PF0003 result")]
    [InlineData("ReadResult result = await reader.ReadAsync();\nReadOnlySequence<byte> rest = result.Buffer;\n"
        + "reader.AdvanceTo(rest.Start, rest.End);\nif (result.IsCompleted && !rest.IsEmpty)\n{\n    throw new InvalidDataException();\n}",
        "PF0003 rest")]
    public async Task BufferUsedBehindAdvance_InTheSameBlock_IsReported(string statements, string expected)
        => Assert.Equal([expected], await Compiled.DiagnoseAsync(statements));

    [Theory]
    [InlineData("while (true)\n{\n    ReadResult result = await reader.ReadAsync();\n    long length = result.Buffer.Length;\n"
        + "    reader.AdvanceTo(result.Buffer.End);\n    if (result.IsCompleted)\n    {\n        break;\n    }\n}")]
    [InlineData("ReadResult result = await reader.ReadAsync();\nreader.AdvanceTo(result.Buffer.End);\nresult = await reader.ReadAsync();\n"
        + "Console.WriteLine(result.Buffer.Length);")]
    [InlineData("ReadOnlySequence<byte> rest = (await reader.ReadAsync()).Buffer;\nreader.AdvanceTo(rest.End);\n"
        + "(rest, int count) = (default(ReadOnlySequence<byte>), 1);\nConsole.WriteLine(rest.Length);")]
    [InlineData("ReadOnlySequence<byte> rest = (await reader.ReadAsync()).Buffer;\nReadOnlySequence<byte> header = new(new byte[4]);\n"
        + "reader.AdvanceTo(rest.GetPosition(header.Length));\nConsole.WriteLine(header.ToString() + nameof(rest));")]
    [InlineData("ReadResult result = await reader.ReadAsync();\nreader.AdvanceTo(result.Buffer.End);\nif (reader.TryRead(out result))\n{\n"
        + "    Console.WriteLine(result.Buffer.Length);\n}")]
    [InlineData("ReadResult result = await reader.ReadAsync();\nif (result.IsCanceled)\n{\n    reader.AdvanceTo(result.Buffer.Start);\n}\n"
        + "else\n{\n    Console.WriteLine(result.Buffer.Length);\n}")]
    public async Task BufferUsedBehindAdvance_AssignedAgainOrElsewhere_IsNot(string statements)
        => Assert.Empty(await Compiled.DiagnoseAsync(statements));

    [Theory]
    [InlineData("Action act = () => other.FlushAsync();\nother.CompleteAsync();", "PF0004 other.CompleteAsync()")]
    [InlineData("FilePipeWriter writer = FilePipeWriter.Create(path);\nwriter.FlushAsync(FlushGuarantee.Durable);",
        "PF0004 writer.FlushAsync(FlushGuarantee.Durable)")]
    [InlineData("other.WriteAsync(new byte[1]);", "PF0004 other.WriteAsync(new byte[1])")]
    [InlineData("other?.FlushAsync();", "PF0004 other?.FlushAsync()")]
    [InlineData("other.FlushAsync().ConfigureAwait(false);", "PF0004 other.FlushAsync().ConfigureAwait(false)")]
    public async Task NotAwaited_Dropped_IsReported(string statements, string expected)
        => Assert.Equal([expected], await Compiled.DiagnoseAsync(statements));

    [Theory]
    [InlineData("await other.FlushAsync();\nValueTask<FlushResult> flush = other.FlushAsync();\nawait flush;\n_ = other.FlushAsync();\n"
        + "new MemoryStream().FlushAsync();")]
    public async Task NotAwaited_AwaitedKeptOrAStreams_IsNot(string statements) => Assert.Empty(await Compiled.DiagnoseAsync(statements));

    [Fact]
    public async Task CompleteReplacementCodeFix_UsingDeclaration_CompletesAtTheEnd()
    {
        string? made = await Compiled.FixAsync("await using FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true "
            + "});\nwriter.Write(\"text\"u8);", new CompleteReplacementCodeFix());
        Assert.Contains("writer.Write(\"text\"u8);\n        await writer.CompleteAsync();\n    }",
            made?.ReplaceLineEndings("\n"), StringComparison.Ordinal);
    }

    [Fact]
    public async Task CompleteReplacementCodeFix_UsingStatement_CompletesInIt()
    {
        string? made = await Compiled.FixAsync("using (FilePipeWriter writer = FilePipeWriter.Create(path, new() { Replace = true }))\n{\n"
            + "    writer.Write(\"text\"u8);\n}", new CompleteReplacementCodeFix());
        Assert.Contains("await writer.CompleteAsync();\n        }", made?.ReplaceLineEndings("\n"), StringComparison.Ordinal);
    }

    [Fact]
    public async Task AwaitCodeFix_InAnAsyncMethod_Awaits()
    {
        Assert.Contains("        await other.FlushAsync();\n",
            (await Compiled.FixAsync("other.FlushAsync();", new AwaitCodeFix()))?.ReplaceLineEndings("\n"), StringComparison.Ordinal);
        Assert.Null(await Compiled.FixAsync("Action act = () => { other.FlushAsync(); };", new AwaitCodeFix()));
        Assert.Null(await Compiled.FixAsync("other?.FlushAsync();", new AwaitCodeFix()));
        Assert.Contains(" await other.FlushAsync().ConfigureAwait(false);\n",
            (await Compiled.FixAsync("other.FlushAsync().ConfigureAwait(false);", new AwaitCodeFix()))?.ReplaceLineEndings("\n"),
            StringComparison.Ordinal);
    }

    [Fact]
    [Trait("Category", "Long")]
    public async Task EveryRule_OnTheSamplesAndTests_SaysNothingWrong()
    {
        string folder = Path.Combine(AppContext.BaseDirectory, "Sources");
        string[] paths = Directory.GetFiles(folder, "*.cs", SearchOption.AllDirectories);
        Assert.NotEmpty(paths);

        // They ask a buffer for its length behind AdvanceTo, of readers of which they know what it gives back.
        string[] right = ["PF0003 EndOfFileTests.cs", "PF0003 FollowTests.cs", "PF0003 ReaderContractTests.cs", "PF0003 ReleaseTests.cs"];
        string[] found = [.. (await Compiled.DiagnoseFilesAsync(paths)).Where(one => !right.Contains(one[..one.LastIndexOf(' ')]))];
        Assert.True(found.Length == 0, string.Join("\n", found));
    }
}
