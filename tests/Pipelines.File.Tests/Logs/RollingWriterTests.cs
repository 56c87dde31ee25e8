using System.IO.Compression;

namespace FilePipelines.Tests;

/// <summary>Logs as the libraries of logging write them, with their own ways of rolling.</summary>
public sealed class RollingWriterTests : FileTests
{
    private const int Count = 400;

    /// <summary>The size that a file is rolled at.</summary>
    private const int FileLength = 2000;

    /// <summary>A writer of lines, and what the follower is given.</summary>
    public static TheoryData<string, string, bool> Writers => new()
    {
        { "Serilog", "app-*.log", true },
        { "NLog", "app*.log", true },
        { "NLog, dates", "app*.log", true },
        { "log4net forward", "app*.log*", true },
        { "log4net", "app.log", false },
        { "Docker", "app.log", false },
        { "Kubernetes", "link.log", false },
    };

    [Theory]
    [MemberData(nameof(Writers))]
    public async Task RollingLog_WhileItIsFollowedAndWhileItIsNot_ComesWholeAndInOrder(string name, string pattern, bool isInNameOrder)
    {
        SkipOnWindows(name);
        QuickOptions options = FollowedLog.Quick with { InNameOrder = isInNameOrder };
        using Writer writer = Open(name);
        writer.Write(Numbers(0, 10));
        List<string> lines = [];
        FileCheckpoint checkpoint;
        await using (FollowedLog log = new(_folder.File(pattern), options))
        {
            await TakeAsync(log, 10);
            writer.Write(Numbers(10, Count));
            await TakeAsync(log, Count / 2);
            checkpoint = log.Current.Checkpoint;
        }

        Assert.InRange(Directory.GetFiles(_folder.Path, "*", SearchOption.AllDirectories).Length, 3, 99);
        writer.Write(Numbers(Count, 2 * Count));
        await using FollowedLog after = new(_folder.File(pattern), options with { Checkpoint = checkpoint });
        await TakeAsync(after, 2 * Count);
        await after.ExpectNothingAsync();
        Assert.Equal(Numbers(0, 2 * Count), lines);

        async Task TakeAsync(FollowedLog log, int count)
        {
            while (lines.Count < count)
            {
                FollowedLine line = await log.NextAsync();
                Assert.False(line.IsAfterGap);
                Assert.Equal(_folder.File(pattern), line.Path);
                lines.Add(line.ToString());
            }
        }
    }

    /// <summary>PIPELINES_FILE_ROTATIONS (4) is how often the file is rolled at least.</summary>
    [Theory]
    [Trait("Category", StressTime.Category)]
    [MemberData(nameof(Writers))]
    public async Task RollingLog_ManyTimesWhileTheFollowerIsStartedAgain_ComesWholeAndInOrder(
        string name, string pattern, bool isInNameOrder)
    {
        SkipOnWindows(name);
        int rotations = int.Parse(Environment.GetEnvironmentVariable("PIPELINES_FILE_ROTATIONS") ?? "4", CultureInfo.InvariantCulture);
        int count = rotations * FileLength / Numbers(0, 1).First().Length;
        using Writer writer = Open(name);
        writer.Write(Numbers(0, 1));
        Task writing = Task.CompletedTask;
        Random random = new(FuzzTime.Seed);
        FileCheckpoint? checkpoint = null;
        List<string> lines = [];
        int starts = 0;
        for (; lines.Count < count; starts++)
        {
            QuickOptions options = FollowedLog.Quick with { InNameOrder = isInNameOrder, Checkpoint = checkpoint };
            await using FollowedLog log = new(_folder.File(pattern), options);
            for (int most = Math.Min(random.Next(1, Count), count - lines.Count); most > 0; most--)
            {
                FollowedLine line = await log.NextAsync();
                Assert.False(line.IsAfterGap, $"{line}");
                lines.Add(line.ToString());
                checkpoint = line.Checkpoint;
                writing = lines.Count == 1 ? Task.Run(WriteAsync, TestContext.Current.CancellationToken) : writing;
            }
        }

        await writing;
        Assert.Equal(Numbers(0, count), lines);
        TestContext.Current.SendDiagnosticMessage(
            $"{name}: {count} lines, {rotations} rotations, {starts} starts of the follower; PIPELINES_FILE_SEED={FuzzTime.Seed}");

        async Task WriteAsync()
        {
            for (int i = 1; i < count; i++)
            {
                writer.Write(Numbers(i, i + 1));
                if (i % 10 == 0)
                {
                    await Task.Delay(random.Next(20), TestContext.Current.CancellationToken);
                }
            }
        }
    }

    [Fact]
    public async Task InNameOrder_FileOfTheCheckpointIsRemoved_GoesOnWithTheNextAndTells()
    {
        File.WriteAllText(_folder.File("app-1.log"), "1\n2\n");
        QuickOptions options = FollowedLog.Quick with { InNameOrder = true };
        CheckpointFile position = await CheckpointFile.OpenAsync(
            _folder.File("position"), cancellationToken: TestContext.Current.CancellationToken);
        await using (FollowedLog log = new(_folder.File("app-*.log"), options))
        {
            await log.ExpectAsync("1");
            position.Set(log.Current.Path, log.Current.Checkpoint);
            Assert.SkipWhen(log.Current.Checkpoint.Identity.Created == 0, "Nobody knows which files were created after one that is gone.");
        }

        // The next tick of the clock of the file system.
        await Task.Delay(20, TestContext.Current.CancellationToken);
        for (int i = 2; i <= 11; i++)
        {
            // Of one tick of the clock of the file system, that is: the names have the order.
            File.WriteAllText(_folder.File($"app-{i}.log"), $"{i + 1}\n");
        }

        File.Delete(_folder.File("app-1.log"));
        await using FollowedLog after = new(_folder.File("app-*.log"), options with { Checkpoints = position.Checkpoints });
        await after.ExpectAsync("3");
        Assert.True(after.Current.IsAfterGap);
        await after.ExpectAsync([.. Enumerable.Range(4, 9).Select(static i => $"{i}")]);
        await after.ExpectNothingAsync();
        Assert.Single(position.Checkpoints);
    }

    /// <summary>Its name does not tell.</summary>
    [Theory]
    [InlineData(false), InlineData(true)]
    public async Task InNameOrder_LastFileIsReplaced_TheNewOneIsRead(bool isKept)
    {
        Assert.SkipWhen(OperatingSystem.IsWindows(), "Wine 8 keeps the name of a deleted file while it is open.");
        string path = _folder.File("app-1.log", "1\n"u8.ToArray());
        await using FollowedLog log = new(_folder.File("app-*.log"), FollowedLog.Quick with { InNameOrder = true });
        await log.ExpectAsync("1");
        for (int i = 2; i < 5; i++)
        {
            File.WriteAllText(_folder.File("new"), $"{i}\n");
            if (isKept)
            {
                File.Move(path, _folder.File($"kept{i}"));
            }

            File.Move(_folder.File("new"), path, overwrite: true);
            await log.ExpectAsync($"{i}");
        }
    }

    /// <summary>Rolled several times at once, with gaps in the numbers, and the follower stopped at any line.</summary>
    [Fact]
    public async Task InNameOrder_StoppedAndRolledAtRandom_GivesEveryLineOnceAndInOrder()
    {
        Random random = new(FuzzTime.Seed);
        await File.WriteAllTextAsync(_folder.File("app.log"), "line 0\n", TestContext.Current.CancellationToken);
        int written = 1;
        int file = 0;
        int read = 0;
        FileCheckpoint? checkpoint = null;
        for (int round = 0; round < 30; round++)
        {
            FollowedLog log = new(_folder.File("app*.log"), FollowedLog.Quick with { InNameOrder = true, Checkpoint = checkpoint });
            await using ConfiguredAsyncDisposable disposing = log.ConfigureAwait(false);
            if (round == 0 || (random.Next(2) == 0 && read < written))
            {
                await log.ExpectAsync($"line {read++}");
            }

            for (int i = random.Next(1, 5); i > 0; i--)
            {
                file += random.Next(2) * random.Next(1, 12);
                string name = _folder.File(file == 0 ? "app.log" : $"app_{file}.log");
                for (int line = random.Next(1, 4); line > 0; line--)
                {
                    await File.AppendAllTextAsync(name, $"line {written++}\n", TestContext.Current.CancellationToken);
                }
            }

            for (int most = random.Next(1, written - read + 1); most > 0; most--)
            {
                await log.ExpectAsync($"line {read++}");
                Assert.False(log.Current.IsAfterGap);
            }

            checkpoint = log.Current.Checkpoint;
        }
    }

    [Theory]
    [InlineData("app.log", "app_1.log", "app_02.log", "app_10.log")]
    [InlineData("app-20261128.log", "app-20261128_001.log", "app-20261128_1000.log", "app-20261129.log")]
    [InlineData("app.20261128.log", "app.20261128.1.log", "app.20261128.10.log")]
    [InlineData("app.log", "app.log.1", "app.log.2", "app.log.10")]
    [InlineData("app.20261128", "app.20261129.1", "app.20261130")]
    [InlineData("a9b1.log", "a10b0.log", "a010b2.log")]
    public void Compare_NamesOfOneLog_AreInTheOrderOfTheirNumbers(params string[] names)
        => Assert.Equal(names, names.Reverse().Order(Comparer<string>.Create(RotatedName.Compare)));

    /// <summary>Sorting with anything else may throw, or give any order.</summary>
    [Fact]
    public void Compare_AnyNames_IsATotalOrder()
    {
        Comparer<string> order = Comparer<string>.Create(RotatedName.Compare);
        string[] parts = ["", "a", "-", "1", ".log", ".b"];
        string[] pairs = [.. from one in parts from other in parts select one + other];
        string[] names = [.. from one in pairs from other in pairs select one + other];
        string[] sorted = [.. names.Distinct().Order(order)];
        for (int i = 0; i < sorted.Length; i++)
        {
            for (int j = 0; j < sorted.Length; j++)
            {
                int expected = i.CompareTo(j);
                Assert.True(Math.Sign(order.Compare(sorted[i], sorted[j])) == expected, $"{sorted[i]} and {sorted[j]}");
            }
        }
    }

    private static IEnumerable<string> Numbers(int first, int end)
        => Enumerable.Range(first, end - first).Select(static i => $"line {i.ToString("00000", CultureInfo.InvariantCulture)} of a log");

    private static void SkipOnWindows(string name)
        => Assert.SkipWhen(OperatingSystem.IsWindows() && (name is "log4net" or "Docker" or "Kubernetes"),
            "They rename their file, which the follower has open, under Wine.");

    private Writer Open(string name)
    {
        string path = _folder.File("app.log");
        switch (name)
        {
            case "Docker":
                return OpenRenamed(path, number =>
                {
                    for (int i = number; i > 0; i--)
                    {
                        if (File.Exists($"{path}.{i}.gz"))
                        {
                            File.Move($"{path}.{i}.gz", $"{path}.{i + 1}.gz");
                        }
                    }

                    File.Move(path, $"{path}.1");
                }, _ => Compress($"{path}.1", $"{path}.1.gz"));
            case "Kubernetes":
                // The kubelet compresses what it has rotated before, and /var/log/containers links to the folder where it does.
                string target = Path.Combine(Directory.CreateDirectory(_folder.File("pods")).FullName, "0.log");
                File.CreateSymbolicLink(_folder.File("link.log"), target);
                return OpenRenamed(target, number =>
                {
                    if (number > 1)
                    {
                        // As the kubelet does, so that the lines have a rotated name at any moment.
                        Compress(Rotated(number - 1), $"{Rotated(number - 1)}.tmp", $"{Rotated(number - 1)}.gz");
                    }

                    File.Move(target, Rotated(number));
                }, static _ => { });

                string Rotated(int number) => string.Create(CultureInfo.InvariantCulture, $"{target}.20261128-{number:000000}");
            case "Serilog":
                Serilog.Core.Logger serilog = Serilog.FileLoggerConfigurationExtensions.File(new Serilog.LoggerConfiguration().WriteTo,
                    _folder.File("app-.log"), outputTemplate: "{Message:lj}{NewLine}", formatProvider: CultureInfo.InvariantCulture,
                    fileSizeLimitBytes: FileLength, rollingInterval: Serilog.RollingInterval.Day, rollOnFileSizeLimit: true,
                    retainedFileCountLimit: null).CreateLogger();
                return new Writer(serilog.Information, serilog.Dispose);
            case "NLog" or "NLog, dates":
                NLog.LogFactory factory = new();
                NLog.Config.LoggingConfiguration configuration = new(factory);
                configuration.AddRuleForAllLevels(new NLog.Targets.FileTarget("file")
                {
                    FileName = name == "NLog" ? path : _folder.File("app-${shortdate}.log"),
                    ArchiveAboveSize = FileLength,
                    Layout = "${message}",
                });
                factory.Configuration = configuration;
                NLog.Logger nlog = factory.GetLogger("test");
                return new Writer(nlog.Info, factory.Dispose);
            default:
                log4net.Appender.RollingFileAppender appender = new()
                {
                    File = path,
                    MaximumFileSize = "2KB",
                    MaxSizeRollBackups = 10_000,
                    RollingStyle = log4net.Appender.RollingFileAppender.RollingMode.Size,
                    StaticLogFileName = name == "log4net",
                    CountDirection = name == "log4net" ? -1 : 1,
                    Layout = new log4net.Layout.PatternLayout("%message%newline"),
                };
                appender.ActivateOptions();
                return new Writer(
                    line => appender.DoAppend(new log4net.Core.LoggingEvent(
                        new log4net.Core.LoggingEventData { Level = log4net.Core.Level.Info, Message = line })),
                    appender.Close);
        }
    }

    /// <summary>A writer that renames its file.</summary>
    /// <param name="path">The file.</param>
    /// <param name="rename">Renames it for the n-th time.</param>
    /// <param name="after">Called when the next file is open.</param>
    private static Writer OpenRenamed(string path, Action<int> rename, Action<int> after)
    {
        GrowingFile file = new(path);
        int rotations = 0;
        return new Writer(line =>
        {
            file.Append($"{line}\n");
            if (file.Length >= FileLength)
            {
                rename(++rotations);
                file.Reopen();
                after(rotations);
            }
        }, file.Dispose);
    }

    private static void Compress(string path, string target, string? name = null)
    {
        using (FileStream plain = new(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete))
        using (GZipStream compressed = new(File.Create(target), CompressionLevel.Fastest))
        {
            plain.CopyTo(compressed);
        }

        File.Move(target, name ?? target);
        File.Delete(path);
    }

    private sealed class Writer(Action<string> write, Action close) : IDisposable
    {
        public void Write(IEnumerable<string> lines)
        {
            foreach (string line in lines)
            {
                write(line);
            }
        }

        public void Dispose() => close();
    }
}
