using System.Buffers;
using System.IO.Pipelines;
using System.Reflection;
using System.Runtime.CompilerServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.Growing;
using Pipelines.File.IO;
using Pipelines.File.Threading;
using Pipelines.File.Writing;

namespace FilePipelines.TwoCallers.Tests;

/// <summary>The first of two calls of a reader of a followed file, which stands at the end.</summary>
public enum FollowedCall
{
    ReadAsync,
    ReadAtLeastAsync,
}

/// <summary>The second one, which comes at any moment.</summary>
internal enum FollowedSecondCall
{
    CancelPendingRead,
    CancelToken,
    CompleteAsync,
    ReadAsync,
}

/// <summary>
/// Two calls of a reader that stands at the end of a followed file, and what happens to the file meanwhile, at every moment at which the
/// back end is called, and between the calls. It knows the file, and nothing of the reader but whether a read waits at the end.
/// </summary>
internal sealed class FollowedOrder : IDisposable
{
    private const int MaxEvents = 3;

    // More than all growth together, so that a file which was cut stays shorter than what was read.
    private const int FirstLength = 40;
    private const int Growth = 3;
    private const int MinimumSize = 5;

    // A number that the kernel gives to no watch.
    private const int NoWatch = -1;

    private static readonly FieldInfo s_stage = typeof(FilePipeReader).GetField("_stage", BindingFlags.NonPublic | BindingFlags.Instance)!;

    private readonly Choices _choices;
    private readonly FollowedCall _first;
    private readonly FollowedSecondCall _second;
    private readonly bool _isWatched;
    private readonly string _path;
    private readonly FollowedBackend _backend;
    private readonly FilePipeReader _reader;
    private readonly FollowedFile _file;
    private readonly SafeFileHandle _writer;
    private readonly CancellationTokenSource _token = new();
    private readonly List<byte> _seen = [];
    private readonly List<string> _story = [];

    private string? _failure;
    private bool _isScripted;
    private bool _isSecondBegun;
    private int _events;
    private Task<ReadResult>? _call;
    private Task? _completion;

    // Of the file: bytes, those that were there when it lost its name, and whether it was cut.
    private int _length;
    private int? _lengthAtLoss;
    private bool _isCut;

    // The last read has completed.
    private bool _isOver;

    // The wait that has not been told of the last event.
    private int _untold = -1;

    // The wait that has found out what its name means.
    private int _nameKnown = -1;

    internal FollowedOrder(
        FollowedCall first, FollowedSecondCall second, FilePipeBackend kind, bool isWatched, string path, Choices choices)
    {
        _first = first;
        _second = second;
        _isWatched = isWatched;
        _path = path;
        _choices = choices;
        _writer = System.IO.File.OpenHandle(path, FileMode.Create, FileAccess.Write, FileShare.ReadWrite | FileShare.Delete);
        Append(FirstLength);
        _backend = new FollowedBackend(
            this, System.IO.File.OpenHandle(path, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete), path, kind);

        // A fifth of it, which a file with a successor is waited for, is nothing.
        _reader = FilePipeReader.Create(
            _backend, new FilePipeReaderOptions { Follow = true, FollowInterval = TimeSpan.FromMilliseconds(1) },
            leaveOpen: false, isOpenedByPath: true);
        _file = (FollowedFile)_reader.OpenedFile;

        // Nobody tells of changes, and nobody looks, but this. The timer was due at once: what it calls is over before a read waits.
        using (ManualResetEvent isOver = new(initialState: false))
        {
            _ = TimerOf(_file).Dispose(isOver);
            isOver.WaitOne();
        }

        TimerOf(_file) = new Timer(static _ => { });
        WatchOf(_file) = isWatched ? new FileWatch(_file) { Number = NoWatch } : null;
    }

    private enum Event
    {
        Perform,
        Second,

        /// <summary>Bytes are appended, and the system tells.</summary>
        Grown,

        /// <summary>Bytes are appended, and nobody tells.</summary>
        GrownUntold,

        /// <summary>Another file, which holds bytes, takes its name. Nobody tells a read that waits.</summary>
        NameLost,

        /// <summary>It is cut. Nobody tells.</summary>
        Cut,

        /// <summary>The system tells of something.</summary>
        Told,
        Look,
        WatchLost,
    }

    public void Dispose()
    {
        _token.Dispose();
        _writer.Dispose();
        _backend.Handle.Dispose();
    }

    internal void Require(bool holds, string what)
    {
        if (!holds)
        {
            _failure ??= $"Not so: {what} (after: {_story.LastOrDefault()})";
        }
    }

    /// <exception cref="Xunit.Sdk.XunitException">An invariant was hurt.</exception>
    internal void Run()
    {
        try
        {
            _call = _reader.ReadAsync(CancellationToken.None).AsTask();
            TakeRead();
            _isScripted = true;
            _story.Add("the first call");
            _call = _first == FollowedCall.ReadAsync
                ? _reader.ReadAsync(_token.Token).AsTask()
                : _reader.ReadAtLeastAsync(MinimumSize, _token.Token).AsTask();
            Settle();
            while (_failure is null && _events < MaxEvents && TryStep())
            {
                Settle();
            }

            _isScripted = false;
            _story.Add("the rest");
            Finish();
        }
        catch (Exception e) when (e is not Xunit.Sdk.XunitException)
        {
            _failure ??= e.ToString();
        }

        if (_failure is not null)
        {
            Assert.Fail(string.Join(
                Environment.NewLine, [_failure, $"{_first} {_second} {_backend.Kind} watched {_isWatched} {_choices}", .. _story]));
        }
    }

    // What the back end asks.

    internal bool HandsOver()
    {
        if (!_isScripted || _events >= MaxEvents || _choices.Choose(2) == 0)
        {
            return false;
        }

        _events++;
        _story.Add("  handed over");
        return true;
    }

    /// <summary>A moment within a call, without a lock: what comes here is what would come from another thread.</summary>
    internal void Within(string where)
    {
        if (!_isScripted || _events >= MaxEvents)
        {
            return;
        }

        List<Event> events = [Event.Grown, Event.NameLost, Event.Cut];
        if (!_isSecondBegun)
        {
            events.Add(Event.Second);
        }

        int choice = _choices.Choose(events.Count + 1);
        if (choice > 0)
        {
            _story.Add("  " + where);
            Do(events[choice - 1]);
        }
    }

    private bool TryStep()
    {
        List<Event> events = [Event.Grown, Event.GrownUntold, Event.NameLost, Event.Cut, Event.Told, Event.Look];
        if (_backend.HasStarted)
        {
            events.Insert(0, Event.Perform);
        }

        if (!_isSecondBegun)
        {
            events.Add(Event.Second);
        }

        if (WatchOf(_file) is not null)
        {
            events.Add(Event.WatchLost);
        }

        if (_call is null && _isSecondBegun && !_backend.HasStarted)
        {
            return false;
        }

        Do(events[_choices.Choose(events.Count)]);
        return true;
    }

    private void Do(Event happens)
    {
        _events++;
        _story.Add($"  {happens} {(happens == Event.Second ? _second : "")}");
        switch (happens)
        {
            case Event.Perform:
                _backend.Perform();
                return;
            case Event.Second:
                BeginSecond();
                return;
            case Event.Grown:
                Append(Growth);
                _file.OnEvent();
                return;
            case Event.GrownUntold:
                Append(Growth);
                break;
            case Event.NameLost when _lengthAtLoss is null:
                System.IO.File.Move(_path, _path + ".1", overwrite: true);
                System.IO.File.WriteAllText(_path, "another");
                _lengthAtLoss = _length;
                if (!_file.IsWaiting)
                {
                    // The system tells. Where a read waits it may be late, or not see it: a folder above has another name.
                    _file.OnEvent();
                }

                break;
            case Event.Cut:
                RandomAccess.SetLength(_writer, 0);
                _length = 0;
                _isCut = true;
                break;
            case Event.Told:
                _file.OnEvent();
                return;
            case Event.Look:
                _nameKnown = _file.IsWaiting ? WaitsOf(_file) : _nameKnown;
                _file.Look();
                _untold = -1;
                return;
            case Event.WatchLost:
                WatchOf(_file) = null;
                _file.OnEvent();
                return;
        }

        _untold = _file.IsWaiting ? WaitsOf(_file) : -1;
    }

    private void BeginSecond()
    {
        _isSecondBegun = true;
        switch (_second)
        {
            case FollowedSecondCall.CancelPendingRead:
                _reader.CancelPendingRead();
                break;
            case FollowedSecondCall.CancelToken:
                _token.Cancel();
                break;
            case FollowedSecondCall.CompleteAsync:
                _completion = _reader.CompleteAsync().AsTask();
                break;
            case FollowedSecondCall.ReadAsync when Stage != 0:
                bool isRefused = false;
                try
                {
                    // While one is pending it is refused, and harms nothing.
                    isRefused = _reader.ReadAsync(CancellationToken.None).AsTask().IsFaulted;
                }
                catch (InvalidOperationException)
                {
                    isRefused = true;
                }

                Require(isRefused, "a second read is refused");
                break;
        }
    }

    /// <summary>Waits until nothing happens by itself any more.</summary>
    private void Settle()
    {
        SpinUntil(() => (_call is null || _call.IsCompleted || (IsUnderWay && (_file.IsWaiting || _backend.HasStarted)))
            && (!IsUnderWay || _file.IsWaiting || _backend.HasStarted));
        if (_call is not null && _call.IsCompleted)
        {
            TakeRead();
        }

        Require(!(_file.IsWaiting && _backend.HasStarted), "an operation is at one place");
        if (_isScripted && _file.IsWaiting && WatchOf(_file) is not null && WaitsOf(_file) != _untold)
        {
            Require(_length <= OffsetOf(_file), "a read waits although there is more, and nobody will tell");
            Require(!_isCut, "a read waits although the file was cut, and nobody will tell");
            Require(_lengthAtLoss is null || WaitsOf(_file) != _nameKnown,
                "a read waits although the name means another file, and nobody will look soon");
        }
    }

    private int Stage => Convert.ToInt32(s_stage.GetValue(_reader), System.Globalization.CultureInfo.InvariantCulture);

    /// <summary>A read was handed over and not reported.</summary>
    private bool IsUnderWay => Stage == 2;

    private void Finish()
    {
        for (int i = 0; i < 50 && (_call is not null || _backend.HasStarted); i++)
        {
            Settle();
            GoOn();
        }

        Require(_call is null, "a call does not end");
        if (_completion is null)
        {
            WriteLoop();
            _completion = _reader.CompleteAsync().AsTask();
        }

        SpinUntil(() => !IsUnderWay || _backend.HasStarted || _file.IsWaiting);
        if (_backend.HasStarted)
        {
            _backend.Perform();
        }

        SpinUntil(() => _completion.IsCompleted);
        Require(_completion.IsCompletedSuccessfully, "CompleteAsync is over");
        Require(_backend.Releases == 1 && _backend.OperationsOut == 0 && !_file.IsWaiting, "everything is released, once");
    }

    /// <summary>Performs what is under way; what waits gets more, and is told.</summary>
    private void GoOn()
    {
        if (_backend.HasStarted)
        {
            _backend.Perform();
        }
        else if (_file.IsWaiting)
        {
            if (!_isCut && _lengthAtLoss is null)
            {
                Append(Growth);
            }

            // A read that wants more than what was found may wait once more.
            int wait = WaitsOf(_file);
            _file.Look();
            Require(!_file.IsWaiting || WaitsOf(_file) != wait, "a look finds what has happened");
        }

        Settle();
    }

    /// <summary>Reads what is left, and compares.</summary>
    private void WriteLoop()
    {
        _isOver = false;
        int end = _lengthAtLoss ?? _length;
        for (int i = 0; i < 50 && !_isOver && _failure is null && (_isCut || _lengthAtLoss is not null || _seen.Count < end); i++)
        {
            _call = _reader.ReadAsync(CancellationToken.None).AsTask();
            for (int j = 0; j < 50 && _call is not null && !_call.IsCompleted; j++)
            {
                Settle();
                GoOn();
            }

            TakeRead();
        }

        Require(_isOver || (!_isCut && _lengthAtLoss is null), "a file that was cut or lost its name ends");
        Require(_seen.SequenceEqual(Enumerable.Range(0, _seen.Count).Select(static i => (byte)i)), "every byte comes once and in order");
        Require(_isCut || _seen.Count >= end, "nothing is lost");
    }

    private void TakeRead()
    {
        if (_call is not { } read)
        {
            return;
        }

        SpinUntil(() => read.IsCompleted);
        _call = null;
        if (!read.IsCompletedSuccessfully)
        {
            CheckError(read.Exception?.InnerException, read.IsCanceled);
            return;
        }

        ReadResult result = read.Result;
        Require(!result.IsCanceled || _second == FollowedSecondCall.CancelPendingRead, "nobody has canceled");
        Require(!result.IsCompleted || _isCut || _lengthAtLoss is not null, "the end waits");
        Require(result.IsCanceled || result.IsCompleted || !result.Buffer.IsEmpty, "a read has something");
        _isOver = result.IsCompleted;
        if (_completion is not null)
        {
            return;
        }

        _seen.AddRange(result.Buffer.ToArray());
        try
        {
            _reader.AdvanceTo(result.Buffer.End);
        }
        catch (InvalidOperationException)
        {
            Require(_completion is not null, "AdvanceTo that nothing forbids is not refused");
        }
    }

    private void CheckError(Exception? error, bool isCanceled)
    {
        Require(!isCanceled || _second is FollowedSecondCall.CancelToken or FollowedSecondCall.CancelPendingRead, "nobody has canceled");
        Require(error is null or OperationCanceledException || (error is InvalidOperationException && _completion is not null),
            $"an error that nothing explains: {error}");
    }

    private void Append(int count)
    {
        RandomAccess.Write(_writer, Enumerable.Range(_length, count).Select(static i => (byte)i).ToArray(), _length);
        _length += count;
    }

    private void SpinUntil(Func<bool> isTrue)
    {
        long end = Environment.TickCount64 + 180_000;
        for (int i = 0; !isTrue(); i++)
        {
            if (i > 1000 && Environment.TickCount64 > end)
            {
                Require(false, "it goes on");
                throw new TimeoutException();
            }

            if (i < 30)
            {
                Thread.SpinWait(20);
            }
            else
            {
                Thread.Yield();
            }
        }
    }

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_timer")]
    private static extern ref Timer TimerOf(FollowedFile file);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_watch")]
    private static extern ref FileWatch? WatchOf(FollowedFile file);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_waits")]
    private static extern ref int WaitsOf(FollowedFile file);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_offset")]
    private static extern ref long OffsetOf(FollowedFile file);
}
