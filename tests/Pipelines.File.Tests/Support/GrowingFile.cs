using System.Buffers;
using System.IO.Pipelines;
using System.Text;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelines.Tests;

/// <summary>
/// A file that a test appends to, rotates and cuts while it is followed, and what a test asks of its follower. Nothing here waits for ever.
/// </summary>
internal sealed class GrowingFile : IDisposable
{
    /// <summary>Short, so that a file which has lost its name is left soon.</summary>
    public static readonly TimeSpan Interval = TimeSpan.FromMilliseconds(25);

    /// <summary>Where the system tells of growth, nothing else is to: no look for a day.</summary>
    public static readonly TimeSpan LongInterval = OperatingSystem.IsLinux() ? TimeSpan.FromDays(1) : Interval;

    private FileStream _stream;

    public GrowingFile(string path, string content = "")
    {
        Path = path;
        _stream = Open(path);
        Append(content);
    }

    public string Path { get; }

    public long Length => RandomAccess.GetLength(_stream.SafeFileHandle);

    /// <summary>How a follower is opened.</summary>
    public static FilePipeReaderOptions Options(long offset = 0, long readAhead = 0, long? length = null)
        => new() { Follow = true, FollowInterval = Interval, Offset = offset, PauseReadAheadThreshold = readAhead, Length = length };

    public FilePipeReader Follow(long offset = 0, long readAhead = 0, long? length = null)
        => FilePipeReader.Create(Path, Options(offset, readAhead, length));

    /// <summary>To the file that was opened last, whatever its name is by now.</summary>
    public void Append(string text) => _stream.Write(Encoding.UTF8.GetBytes(text));

    /// <summary>Makes a new file of the name, which is appended to from here on.</summary>
    public void Reopen()
    {
        _stream.Dispose();
        _stream = Open(Path);
    }

    public void Cut(long length)
    {
        if (OperatingSystem.IsLinux())
        {
            RandomAccess.SetLength(_stream.SafeFileHandle, length);
            return;
        }

        // The stream writes where it takes the end to be.
        _stream.SetLength(length);
        _stream.Position = length;
    }

    public void Dispose() => _stream.Dispose();

    /// <summary>Deletes a file that is open somewhere.</summary>
    public static void Delete(string path)
    {
        File.Delete(path);
        Assert.SkipWhen(File.Exists(path), "Wine 8 keeps the name of a deleted file, and tells of nothing (no pending delete, "
            + "the same file), until the last one has closed it.");
    }

    public static async Task<T> Bounded<T>(Task<T> task) => await task.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);

    public static Task<T> Bounded<T>(ValueTask<T> task) => Bounded(task.AsTask());

    public static Task Bounded(Task task) => task.WaitAsync(Eventually.Limit, TestContext.Current.CancellationToken);

    /// <summary>Reads that text, and consumes it.</summary>
    public static async Task ExpectAsync(PipeReader reader, string text)
    {
        if (text.Length == 0)
        {
            return;
        }

        ReadResult result = await Bounded(reader.ReadAtLeastAsync(text.Length, TestContext.Current.CancellationToken));
        Assert.Equal(text, Encoding.UTF8.GetString(result.Buffer.Slice(0, Math.Min(text.Length, result.Buffer.Length))));
        reader.AdvanceTo(result.Buffer.GetPosition(text.Length));
    }

    /// <summary>Reads until the reader completes: the text that was left.</summary>
    public static async Task<string> ReadToEndAsync(PipeReader reader)
    {
        StringBuilder text = new();
        ReadResult result;
        do
        {
            result = await Bounded(reader.ReadAsync(TestContext.Current.CancellationToken));
            text.Append(Encoding.UTF8.GetString(result.Buffer));
            reader.AdvanceTo(result.Buffer.End);
        }
        while (!result.IsCompleted);
        return text.ToString();
    }

    /// <summary>Begins a read that finds the end, and gives it when it waits there.</summary>
    public static Task<Task<ReadResult>> WaitAtEndAsync(PipeReader reader)
        => WaitAtEndUntilAsync(reader, TestContext.Current.CancellationToken);

    /// <inheritdoc cref="WaitAtEndAsync"/>
    public static async Task<Task<ReadResult>> WaitAtEndUntilAsync(PipeReader reader, CancellationToken cancellationToken)
    {
        Task<ReadResult> waiting = reader.ReadAsync(cancellationToken).AsTask();
        await Task.Delay(30, TestContext.Current.CancellationToken);
        Assert.False(waiting.IsCompleted);
        return waiting;
    }

    // O_APPEND on Linux, as programs that log have it: FileMode.Append alone writes where the end once was, also after a cut.
    private static FileStream Open(string path)
    {
        if (!OperatingSystem.IsLinux())
        {
            FileStream stream = new(path, new FileStreamOptions
            {
                Mode = FileMode.OpenOrCreate,
                Access = FileAccess.Write,
                Share = FileShare.ReadWrite | FileShare.Delete,
                BufferSize = 0,
            });
            stream.Position = stream.Length;
            return stream;
        }

        int descriptor = LibcCalls.Open(path, Libc.O_WRONLY | Libc.O_CREAT | Libc.O_APPEND | Libc.O_CLOEXEC, mode: 0x1B6);
        Assert.True(descriptor >= 0, path);
        return new FileStream(new SafeFileHandle(descriptor, ownsHandle: true), FileAccess.Write, bufferSize: 0);
    }
}
