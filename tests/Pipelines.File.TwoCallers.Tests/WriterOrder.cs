using System.IO.Pipelines;
using Pipelines.File;
using Pipelines.File.IO;
using Pipelines.File.Writing;

namespace FilePipelines.TwoCallers.Tests;

/// <summary>Two calls of a writer. It knows no more than what a caller knows, and what the back end has taken.</summary>
internal sealed class WriterOrder : Order
{
    private const int ShortAnswer = 2;
    private const int Piece = 5;
    private const int Written = 7;

    private static readonly byte[] s_source = [.. Enumerable.Range(1, 200).Select(i => (byte)i)];

    private static readonly FastWrites s_fast = StoppedClock.AllInlineWrites();

    private readonly WriterSituation _situation;
    private readonly WriterCall _first;
    private readonly WriterCall _second;
    private readonly FilePipeWriter _writer;

    // Whether every flush is to be on the device, the name of the file included.
    private readonly bool _isDurable;

    // The flushes and completions that have begun and not ended; the flushes among them whose call has not returned.
    private readonly List<Wait> _waits = [];
    private readonly List<Wait> _calls = [];

    // Bytes from the beginning: advanced over, handed over, taken by the back end, and on its device.
    private int _advanced;
    private int _flushed;
    private int _taken;
    private int _synced;

    // What the sink has to have in the end: at least, and at most, where a write and Complete overlap.
    private int _due;
    private int _mostDue;
    private Memory<byte> _memory;
    private bool _isRoomOut;
    private bool _isCopying;

    // Bytes that a WriteAsync on the stack brings, some of which may be in the writer already.
    private int _writing;
    private bool _isAborted;
    private bool _hasTakenNone;
    private int _cancellations;

    internal WriterOrder(WriterSituation situation, bool hasCallersPool, WriterCall first, WriterCall second, Choices choices)
        : base(choices, hasCallersPool, MaxEventsOf(situation, first, second), canSeek: situation >= WriterSituation.UnflushedAndFast)
    {
        _situation = situation;
        _first = first;
        _second = second;
        FilePipeWriterOptions options = new()
        {
            MinimumBufferSize = 8,
            Pool = Pool,
            FlushGuarantee = situation switch
            {
                WriterSituation.WriteBehind => FlushGuarantee.WriteBehind,
                WriterSituation.DurableAndNew => FlushGuarantee.Durable,
                _ => FlushGuarantee.Written,
            },
            PauseWriterThreshold = 16,
        };
        Backend.IsNew = _isDurable = situation == WriterSituation.DurableAndNew;
        _synced = _isDurable ? -1 : 0;
        _writer = FilePipeWriter.Create(Backend, options, leaveOpen: false, isOpenedByPath: _isDurable, s_fast);
    }

    protected override string Code => $"{_situation} {(Pool is null ? "own" : "callers")} {_first} {_second} {Choices}";

    // A file that can seek hands nothing over: its calls end by themselves.
    protected override ReadOnlySpan<Answer> TryAnswers(FileRequest operation)
    {
        ReadOnlySpan<Answer> answers = operation.Kind != FileRequestKind.Write ? [Answer.Full, Answer.Error, Answer.HandOver]
            : [Answer.Full, Answer.Short, Answer.None, Answer.Error, Answer.HandOver];
        return Backend.CanSeek ? answers[..^1] : answers;
    }

    // Within the caller's own calls only those may come that may come from any thread.
    protected override bool MayBeginSecond => !_isCopying || _second >= WriterCall.CancelPendingFlush;

    // Abort gives back no memory that the caller may be writing into.
    private bool KeepsRoom => _isRoomOut && _isAborted;

    protected override bool IsOver => _waits.Count == 0 && !IsCompleted;

    internal static WriterOrder Parse(string code)
    {
        string[] parts = code.Split(' ');
        return new WriterOrder(
            Enum.Parse<WriterSituation>(parts[0]), parts[1] == "callers", Enum.Parse<WriterCall>(parts[2]),
            Enum.Parse<WriterCall>(parts[3]), Choices.Parse(parts[4]));
    }

    // GetSpan and Dispose call others and no more; where bytes are there or a write is under way already, that is an event less.
    private static int MaxEventsOf(WriterSituation situation, WriterCall first, WriterCall second)
        => first >= WriterCall.Dispose || second >= WriterCall.Dispose || first == WriterCall.GetSpan || second == WriterCall.GetSpan ? 1
            : situation is WriterSituation.NothingWritten or WriterSituation.MemoryOut or WriterSituation.SyncPending ? MaxEvents
            : MaxEvents - 1;

    protected override void Begin()
    {
        switch (_situation)
        {
            case WriterSituation.MemoryOut:
                Call(WriterCall.GetMemory);
                break;
            case WriterSituation.Unflushed or WriterSituation.UnflushedAndFast:
                Call(WriterCall.GetMemory);
                Call(WriterCall.Advance);
                break;
            case WriterSituation.FlushPending or WriterSituation.WriteBehind:
                Call(WriterCall.WriteAsync);
                break;
            case WriterSituation.SyncPending:
                Call(WriterCall.GetMemory);
                Call(WriterCall.Advance);
                Call(WriterCall.FlushDurableAsync);
                Backend.Report(Answer.Full);
                Require(Backend.Started is { Kind: FileRequestKind.Sync }, "it syncs");
                break;
        }
    }

    protected override void First() => Call(_first);

    protected override void Second() => Call(_second);

    protected override void Settle()
    {
        for (int i = 0; i < _waits.Count;)
        {
            Wait wait = _waits[i];
            SpinUntil(static state => state.Order.IsSettled(state.Wait), (Order: this, Wait: wait),
                static state => state.Order.Fail("It does not end: " + state.Wait.Name));
            if (wait.IsCompleted)
            {
                _waits.RemoveAt(i);
                Take(wait);
            }
            else
            {
                Require(Backend.Started is not null, "somebody waits, and nothing is under way");
                Require(!wait.IsCompletion || Backend.Releases == 0, "completing is over when everything is released");
                i++;
            }
        }

        Require(!_isAborted || Backend.Started is null || Backend.IsCancelAsked, "the back end is asked to give up what was aborted");
        Require(_memory.Span.SequenceEqual(s_source.AsSpan(_advanced, _memory.Length)), "the memory that the caller has is the caller's");
    }

    protected override void Finish()
    {
        FinishWaits();
        if (!IsCompleted)
        {
            Call(WriterCall.CompleteAsync);
            FinishWaits();
        }

        Require(Backend.Releases == 1, "the handle is released in the end");
        Require(_waits.Count == 0, "everything has ended");
        Require(_isAborted || FileError is not null || _hasTakenNone || (_taken >= _due && _taken <= _mostDue),
            "everything that was due is written, and nothing else");
        Require(_writer.UnflushedBytes == 0, "nothing is unflushed after Complete");
        if (Pool is not null)
        {
            // A work item gives it back.
            SpinUntil(static order => order.Pool!.Rented == 0 || order.KeepsRoom, this, static _ => { });
            Require(Pool.Rented == 0 || KeepsRoom, "all memory is given back");
            Require(Pool.ReturnedTwice == 0, "memory is given back once");
            Require(Pool.Pins == 0, "memory that the caller has kept is not pinned");
            Require(Pool.ReturnedPinned == 0, "memory is given back when the system is done with it");
        }
    }

    protected override void OnReport(Answer answer, bool isWithinStart) => Backend.Report(answer);

    protected override void OnPerformed(Answer answer)
    {
        foreach (Wait wait in _waits.Concat(_calls))
        {
            wait.MustEnd |= !wait.IsCompletion
                && (FileError is not null || _hasTakenNone || (wait.IsDurable ? _synced : _taken) >= wait.Target);
        }
    }

    protected override ReadOnlySpan<Answer> ReportAnswers(FileRequest operation)
        => operation.Kind != FileRequestKind.Write ? [Answer.Full, Answer.Error, Answer.Canceled]
            : [Answer.Full, Answer.Short, Answer.None, Answer.Error, Answer.Canceled];

    protected override Answer TryUnscripted() => Backend.CanSeek ? Answer.Full : Answer.HandOver;

    protected override void OnNone() => _hasTakenNone = true;

    protected override void OnFirstStarts()
    {
        if (_writing > 0)
        {
            // It is a flush by now.
            _advanced += _writing;
            _flushed = _advanced;
            _writing = 0;
            _isCopying = false;
            _isRoomOut = false;
        }
    }

    protected override void OnPoolError()
    {
    }

    /// <summary>Takes the next bytes.</summary>
    protected override long Move(FileRequest operation, Answer answer)
    {
        switch (operation.Kind)
        {
            case FileRequestKind.Sync:
                _synced = _taken;
                return 0;
            case FileRequestKind.Step:
                operation.Step!();
                return 0;
        }

        Require(operation.Offset == _taken, "each write goes on where the last one ended");
        Require(operation.Length > 0, "each write has bytes");
        int count = answer == Answer.Short ? (int)Math.Min(operation.Length, ShortAnswer) : (int)operation.Length;
        int left = count;
        foreach (TransferBuffer buffer in operation.Buffers)
        {
            int length = Math.Min(left, buffer.Memory.Length);
            Require(buffer.Memory.Span[..length].SequenceEqual(s_source.AsSpan(_taken, length)),
                "the file gets the bytes of the caller, each once and in order");
            _taken += length;
            left -= length;
        }

        Require(_taken <= Math.Max(_flushed, _mostDue), "nothing is written that was not flushed");
        return count;
    }

    private void Call(WriterCall call)
    {
        switch (call)
        {
            case WriterCall.GetMemory or WriterCall.GetSpan:
                GetMemory(call == WriterCall.GetSpan);
                break;
            case WriterCall.Advance:
                Advance();
                break;
            case WriterCall.FlushAsync:
                Flush("FlushAsync", () => _writer.FlushAsync(Token.Token), 0, _isDurable);
                break;
            case WriterCall.FlushDurableAsync:
                Flush("FlushAsync(Durable)", () => _writer.FlushAsync(FlushGuarantee.Durable, Token.Token), 0, isDurable: true);
                break;
            case WriterCall.WriteAsync:
                _memory = default;
                Flush("WriteAsync", () => _writer.WriteAsync(s_source.AsMemory(_advanced, Written), Token.Token), Written, _isDurable);
                break;
            case WriterCall.CancelPendingFlush:
                // A WriteAsync that is still copying flushes afterwards: a cancellation is for those that flush already, if any.
                _cancellations++;
                EndFlushes(areAll: !_isCopying);
                _writer.CancelPendingFlush();
                break;
            case WriterCall.CancelToken:
                IsTokenCanceled = true;
                EndFlushes();
                Token.Cancel();
                break;
            case WriterCall.Abort:
                _isAborted |= Backend.Releases == 0;
                IsCompleted = true;
                EndFlushes();
                _writer.Abort();
                break;
            default:
                Complete(call);
                break;
        }
    }

    private void GetMemory(bool asSpan)
    {
        bool mustThrow = IsCompleted;
        bool isOverlapping = _calls.Count > 0;
        bool wasCopying = _isCopying;
        _isCopying = true;
        try
        {
            Memory<byte> memory = _writer.GetMemory(Piece);
            if (asSpan)
            {
                Require(memory.Span == _writer.GetSpan(Piece), "GetSpan is GetMemory's");
            }

            Require(!mustThrow, "GetMemory is refused after Complete");
            _isRoomOut = true;
            _memory = memory[..Piece];
            s_source.AsSpan(_advanced, Piece).CopyTo(_memory.Span);
        }
        catch (InvalidOperationException)
        {
            Require(IsCompleted || isOverlapping, "GetMemory is not refused before Complete, nor but while another call is under way");
        }
        catch (Exception e) when (e == PoolError)
        {
        }

        _isCopying = wasCopying;
    }

    private void Advance()
    {
        int bytes = _memory.Length;
        bool isOverlapping = _calls.Count > 0;
        Memory<byte> memory = _memory;
        try
        {
            _memory = default;
            // After Abort the memory that was out then stays away from its pool.
            bool wasCompleted = IsCompleted;
            _writer.Advance(bytes);
            _isRoomOut &= wasCompleted;
            _advanced += IsCompleted ? 0 : bytes;
        }
        catch (Exception e) when (e is InvalidOperationException or ArgumentOutOfRangeException)
        {
            // What is refused has changed nothing.
            _memory = IsCompleted ? default : memory;
            Require(IsCompleted || isOverlapping, "Advance is not refused before Complete, nor but while another call is under way");
        }
    }

    private void Flush(string name, Func<ValueTask<FlushResult>> flush, int copied, bool isDurable)
    {
        // After Complete nothing is left to flush, so that it is only refused where what it promises does not hold.
        int target = IsCompleted ? _due : _advanced + copied;
        bool isOverlapping = _calls.Count > 0;
        (int Writing, bool IsCopying) earlier = (_writing, _isCopying);
        Wait wait = new() { Name = name, Target = target, IsDurable = isDurable };
        bool mustThrow = IsCompleted && (_isAborted || copied > 0);
        _isCopying = copied > 0 && Pool is not null;
        if (!mustThrow && copied == 0)
        {
            _flushed = target;
        }
        else if (!mustThrow)
        {
            // Until it has returned, some of its bytes may be in the writer.
            _mostDue = target;
        }

        int flushed = _flushed;
        _writing = copied;
        _calls.Add(wait);
        try
        {
            wait.Begin(flush());
            _isRoomOut &= _writing == 0;
            _advanced = Math.Max(_advanced, target);
            _flushed = Math.Max(_flushed, target);
            Require(!mustThrow, "a write is refused after Complete, and after Abort a flush, too");
            _waits.Add(wait);
        }
        catch (InvalidOperationException)
        {
            Require(IsCompleted || isOverlapping, "a flush is not refused before Complete, nor but while another call is under way");
        }
        catch (Exception e) when (e == PoolError)
        {
            // What it had copied before is in the writer, or what it had written from where it was.
            _flushed = Math.Max(flushed, _taken);
            _advanced = _flushed + (int)_writer.UnflushedBytes;
        }

        _writing = isOverlapping ? earlier.Writing : 0;
        _isCopying = isOverlapping && earlier.IsCopying;
        _calls.Remove(wait);
    }

    private void Complete(WriterCall call)
    {
        bool dropsUnflushed = call == WriterCall.CompleteAsyncWithError;
        if (!IsCompleted && _calls.Count > 0)
        {
            // The writer's one caller is in a call.
            Exception? refused = Record.Exception(() =>
            {
                switch (call)
                {
                    case WriterCall.Complete:
                        _writer.Complete();
                        break;
                    case WriterCall.Dispose:
                        _writer.Dispose();
                        break;
                    case WriterCall.DisposeAsync:
                        _writer.DisposeAsync().AsTask().GetAwaiter().GetResult();
                        break;
                    default:
                        _writer.CompleteAsync(dropsUnflushed ? new IOException("the caller's") : null).AsTask().GetAwaiter().GetResult();
                        break;
                }
            });
            Require(refused is InvalidOperationException, "completing is refused while another call is under way");
            return;
        }

        if (!IsCompleted)
        {
            _due = dropsUnflushed ? _flushed : _advanced;
            _memory = Pool is null ? _memory : default;
            _mostDue = _due + _writing;
            IsCompleted = true;
        }

        bool isWithin = _calls.Count > 0 || Backend.IsBusy;
        Wait wait = new()
        {
            Name = call.ToString(),
            IsCompletion = true,
            WasAborted = _isAborted,
            MayReturnEarly = call >= WriterCall.Dispose,
        };
        _waits.Add(wait);
        switch (call)
        {
            case WriterCall.Complete:
                wait.Caller = BlockingCalls.Shared.Begin(() => _writer.Complete());
                break;
            case WriterCall.Dispose:
                wait.Caller = BlockingCalls.Shared.Begin(_writer.Dispose);
                break;
            case WriterCall.DisposeAsync:
                wait.Task = _writer.DisposeAsync().AsTask();
                break;
            default:
                wait.Task = _writer.CompleteAsync(dropsUnflushed ? new IOException("the caller's") : null).AsTask();
                break;
        }

        if (wait.Caller is { } caller)
        {
            SpinUntil(
                static state => state.Caller.IsCompleted
                    || (state.Caller.IsWaiting && (state.IsWithin || state.Order.Backend is { IsBusy: false, Started: not null })),
                (Order: this, Caller: caller, IsWithin: isWithin),
                static state => state.Order.Fail("It does not wait, and does not end."));
        }
    }

    private void EndFlushes(bool areAll = true)
    {
        foreach (Wait wait in areAll ? _waits.Concat(_calls) : _waits)
        {
            wait.MustEnd |= !wait.IsCompletion;
        }
    }

    private bool IsSettled(Wait wait)
        => wait.IsCompleted || (wait.IsCompletion ? Backend.Releases == 0 && !Backend.IsBusy && (Backend.Started is not null)
            && (wait.Caller?.IsWaiting ?? true) : !wait.MustEnd);

    private void Take(Wait wait)
    {
        try
        {
            FlushResult result = wait.TakeResult();
            if (wait.IsCompletion)
            {
                Require(wait.MayReturnEarly || Backend.Releases == 1, "completing is over after everything is released");
                Require(wait.MayReturnEarly || wait.WasAborted || (FileError is null && !_hasTakenNone),
                    "completing throws what a write has failed with");
                Require(wait.MayReturnEarly || wait.WasAborted || !_isDurable || _synced == _taken,
                    "completing is over when everything is on the device");
            }
            else if (result.IsCanceled)
            {
                Require(_cancellations > 0, "nobody has canceled");
            }
            else
            {
                Require(_situation == WriterSituation.WriteBehind || wait.IsDurable || _taken >= wait.Target,
                    "a flush ends when its bytes are written");
                Require(!wait.IsDurable || _synced >= wait.Target, "a durable flush ends when its bytes are on the device");
            }
        }
        catch (OperationCanceledException)
        {
            Require(_isAborted || (IsTokenCanceled && !wait.IsCompletion), "nobody has canceled");
        }
        catch (IOException e)
        {
            Require(e == FileError || (_hasTakenNone && e.Message != "the caller's"), "it throws what a write has failed with");
        }
    }

    private void FinishWaits()
    {
        for (int i = 0; i < 100; i++)
        {
            Settle();
            if (Backend.Started is not { } started)
            {
                return;
            }

            ReadOnlySpan<Answer> answers = ReportAnswers(started);
            Report(HasEvents && i == 0 ? answers[Choices.Choose(answers.Length)] : answers[0]);
        }

        Fail("It does not end.");
    }

    private sealed class Wait
    {
        private ValueTask<FlushResult> _flush;

        internal required string Name { get; init; }

        internal bool IsCompletion { get; init; }

        internal bool IsDurable { get; init; }

        internal bool WasAborted { get; init; }

        /// <summary>It waits for nobody else's completion.</summary>
        internal bool MayReturnEarly { get; init; }

        internal int Target { get; init; }

        /// <summary>Something has happened that ends it.</summary>
        internal bool MustEnd { get; set; }

        internal Task? Task { get; set; }

        internal BlockingCalls.Caller? Caller { get; set; }

        internal bool IsCompleted => Caller?.IsCompleted ?? Task?.IsCompleted ?? _flush.IsCompleted;

        internal void Begin(ValueTask<FlushResult> flush) => _flush = flush;

        internal FlushResult TakeResult()
        {
            if (Caller is not null)
            {
                if (Caller.End() is { } error)
                {
                    throw error;
                }
            }
            else if (Task is not null)
            {
                Task.GetAwaiter().GetResult();
            }
            else
            {
                return _flush.GetAwaiter().GetResult();
            }

            return default;
        }
    }
}
