using System.Diagnostics;
using System.Text;
using FsCheck;
using FsCheck.Fluent;

namespace FilePipelines.Tests;

/// <summary>
/// Random sequences of what can happen to a followed file, against a model that knows what its follower has to give, and when it has to
/// complete.
/// </summary>
[Collection("whole process")]
public sealed class FollowOracleTests
{
    // Short: what has lost its name is left after four of them.
    private static readonly TimeSpan s_interval = TimeSpan.FromMilliseconds(10);

    public enum Verb
    {
        Append,
        Rename,
        RenameAndAppend,
        RenameAndCreate,
        Delete,
        Replace,
        ReplaceEmpty,
        Cut,
        Cancel,
        CancelToken,
        Restart,
    }

    /// <summary>
    /// What happens, with how many bytes, whether a read waits meanwhile, and whether everything is read before the next.
    /// </summary>
    public sealed record Act(Verb Verb, int Size, bool IsAwake, bool IsReadAfter);

    public sealed record Scenario(IReadOnlyList<Act> Acts, int BufferSize, long ReadAhead);

    private static Arbitrary<Scenario> Scenarios()
    {
        Gen<Act> act = from verb in Gen.Frequency((5, Gen.Constant(Verb.Append)), (6, Gen.Elements(Enum.GetValues<Verb>())))
                       from size in Gen.Frequency((3, Gen.Choose(0, 100)), (1, Gen.Choose(1000, 300_000)))
                       from isAwake in Gen.Elements(true, false)
                       from isReadAfter in Gen.Elements(true, false)
                       select new Act(verb, size, isAwake, isReadAfter);
        return (from acts in Gen.ListOf(act)
                from bufferSize in Gen.Elements(1, 100, 4096, 65_536)
                from readAhead in Gen.Elements(0L, 0L, 1L, 10_000L)
                select new Scenario([.. acts], Math.Max(bufferSize, 16), readAhead)).ToArbitrary();
    }

    [Fact]
    [Trait("Category", FuzzTime.Category)]
    public void AnySequenceOfEvents_GivesEveryByteOnceAndCompletesWhereItHasTo()
        => FuzzTime.Check(
            Prop.ForAll(Scenarios(), scenario => Task.Run(() => CheckAsync(scenario)).WaitAsync(Eventually.Limit).GetAwaiter().GetResult()),
            cases: 40, endSize: 20);

    private static async Task CheckAsync(Scenario scenario)
    {
        using TempFolder folder = new();
        string path = folder.File("log");
        using GrowingFile file = new(path);
        FilePipeReaderOptions options = new()
        {
            Follow = true,
            FollowInterval = s_interval,
            BufferSize = scenario.BufferSize,
            PauseReadAheadThreshold = scenario.ReadAhead,
        };
        FilePipeReader reader = FilePipeReader.Create(path, options);

        // What the follower has not given of the file that it has open, and which line comes next.
        StringBuilder unread = new();
        int next = 0;
        int files = 0;
        foreach (Act act in scenario.Acts)
        {
            Task<ReadResult>? waiting = null;
            using CancellationTokenSource source = new();
            if (act.IsAwake || act.Verb is Verb.Cancel or Verb.CancelToken)
            {
                await ExpectAsync(reader, unread);
                waiting = reader.ReadAsync(source.Token).AsTask();
            }

            bool isOver = false;

            // Of what is unread the end that came too late after a rename to be given for certain.
            int late = 0;
            switch (act.Verb)
            {
                case Verb.Append:
                    Append(act.Size);
                    break;
                case Verb.Rename or Verb.RenameAndAppend:
                    long before = Stopwatch.GetTimestamp();
                    File.Move(path, $"{path}.{++files}");
                    if (act.Verb == Verb.RenameAndAppend)
                    {
                        int length = unread.Length;
                        Append(act.Size);

                        // A busy machine may have stopped this thread in between.
                        late = Stopwatch.GetElapsedTime(before) < s_interval / 2 ? 0 : unread.Length - length;
                    }

                    isOver = true;
                    break;
                case Verb.RenameAndCreate:
                    Append(act.Size);
                    File.Move(path, $"{path}.{++files}");
                    file.Reopen();
                    isOver = true;
                    break;
                case Verb.Delete when !OperatingSystem.IsWindows():
                    File.Delete(path);
                    isOver = true;
                    break;
                case Verb.Replace or Verb.ReplaceEmpty when !OperatingSystem.IsWindows():
                    await File.WriteAllTextAsync(path + ".new", act.Verb == Verb.Replace ? new string('x', act.Size) : "");
                    File.Move(path + ".new", path, overwrite: true);
                    isOver = true;
                    break;
                case Verb.Cut when unread.Length == 0 && file.Length > 0:
                    file.Cut(act.Size % file.Length);
                    isOver = true;
                    break;
                case Verb.Cancel:
                    reader.CancelPendingRead();
                    ReadResult canceled = await GrowingFile.Bounded(waiting!);
                    Assert.True(canceled.IsCanceled);
                    Assert.False(canceled.IsCompleted);
                    Assert.True(canceled.Buffer.IsEmpty);
                    waiting = null;
                    break;
                case Verb.CancelToken:
                    await source.CancelAsync();
                    await Assert.ThrowsAnyAsync<OperationCanceledException>(() => GrowingFile.Bounded(waiting!));
                    waiting = null;
                    break;
                case Verb.Restart when waiting is null:
                    // As after a crash: where it was left is all that is kept.
                    string checkpoint = reader.Identity.ToString();
                    long position = reader.Position;
                    await reader.CompleteAsync();
                    reader = FilePipeReader.Create(path, new() { Follow = true, FollowInterval = s_interval, Offset = position });
                    Assert.Equal(checkpoint, reader.Identity.ToString());
                    break;
            }

            if (waiting is not null && (unread.Length > 0 || isOver))
            {
                ReadResult result = await GrowingFile.Bounded(waiting);
                string text = Encoding.UTF8.GetString(result.Buffer);
                Assert.StartsWith(text, unread.ToString(), StringComparison.Ordinal);
                Assert.True(text.Length > 0 || isOver);
                Assert.True(!result.IsCompleted || (isOver && text.Length >= unread.Length - late));
                reader.AdvanceTo(result.Buffer.End);
                unread.Remove(0, text.Length);
            }
            else if (waiting is not null)
            {
                Assert.False(waiting.IsCompleted);
                reader.CancelPendingRead();
                Assert.True((await GrowingFile.Bounded(waiting)).IsCanceled);
            }

            if (isOver)
            {
                string rest = await GrowingFile.ReadToEndAsync(reader);
                Assert.StartsWith(rest, unread.ToString(), StringComparison.Ordinal);
                Assert.True(rest.Length >= unread.Length - late,
                    $"{unread.Length - rest.Length} bytes are missing, {late} of them may be.");
                await reader.CompleteAsync();
                unread.Clear();
                file.Reopen();
                reader = FilePipeReader.Create(path, options);
                if (file.Length > 0)
                {
                    using StreamReader written = new(path, new FileStreamOptions { Share = FileShare.ReadWrite | FileShare.Delete });
                    unread.Append(await written.ReadToEndAsync());
                }
            }
            else if (act.IsReadAfter)
            {
                await ExpectAsync(reader, unread);
            }
        }

        await ExpectAsync(reader, unread);
        await reader.CompleteAsync();
        if (OperatingSystem.IsLinux())
        {
            await Eventually.TrueAsync(() => OpenHandles.Below(folder.Path) == 1);
        }

        void Append(int size)
        {
            StringBuilder text = new();
            while (text.Length < size)
            {
                text.Append(System.Globalization.CultureInfo.InvariantCulture, $"{next++}\n");
            }

            file.Append(text.ToString());
            unread.Append(text);
        }
    }

    private static async Task ExpectAsync(FilePipeReader reader, StringBuilder unread)
    {
        await GrowingFile.ExpectAsync(reader, unread.ToString());
        unread.Clear();
    }
}
