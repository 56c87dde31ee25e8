using System.Buffers;
using System.IO.Pipelines;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Pipelines.File;
using Pipelines.File.IO;
using Pipelines.File.Reading;
using Pipelines.File.Threading;
using Pipelines.File.Writing;

namespace FilePipelines.TwoCallers.Tests;

/// <summary>Two calls of a reader. It knows no more than what a caller knows, and what the back end has delivered.</summary>
internal sealed class ReaderOrder : Order
{
    private const int SegmentSize = 8;
    private const int ShortAnswer = 3;
    private const int MaxAnswer = 64;
    private const int MinimumSize = 12;

    // Where AdvanceTo goes to, bytes of the buffer.
    private const int Some = 2;
    private const int More = 4;
    private const int End = int.MaxValue;

    private static readonly byte[] s_source = [.. Enumerable.Range(1, 200).Select(i => (byte)i)];

    private readonly ReaderSituation _situation;
    private readonly ReaderCall _first;
    private readonly ReaderCall _second;
    private readonly FilePipeReader _reader;
    private readonly CopyDestination _destination;

    // The thread that calls and reports, and whether it waits for the copy on a thread of the pool, so that one of the two runs.
    private readonly int _thread = Environment.CurrentManagedThreadId;
    private volatile bool _letsCopyRun;

    // The calls that have returned a task that has not ended.
    private readonly List<Wait> _waits = [];

    // The reads and copies that have been called and have not returned.
    private readonly List<Wait> _calls = [];

    // Bytes from the beginning: what the back end has delivered, what the caller has seen, and what it has consumed.
    private int _delivered;
    private int _seen;
    private int _consumed;
    private int _examined;

    // What the caller has: the buffer of the last read, and how much it had consumed before.
    private ReadOnlySequence<byte> _buffer;
    private int _bufferStart;
    private int _bufferLength;
    private SequencePosition _some;
    private SequencePosition _more;
    private SequencePosition _end;
    private bool _isBufferOut;

    private bool _handsOver;
    private bool _hasEnded;
    private int _cancellations;
    private bool _isCancellationDue;
    private bool _isCopyCanceled;
    private bool _ignoresResult;

    internal ReaderOrder(ReaderSituation situation, bool hasCallersPool, ReaderCall first, ReaderCall second, Choices choices)
        : base(choices, hasCallersPool, MaxEventsOf(situation, first, second))
    {
        _situation = situation;
        _first = first;
        _second = second;
        _destination = new CopyDestination(this);
        FilePipeReaderOptions options = new()
        {
            BufferSize = SegmentSize,
            Pool = Pool,
            PauseReadAheadThreshold = situation is ReaderSituation.ReadAhead or ReaderSituation.ReadAheadAndBufferOut ? 12 : 0,
        };
        _reader = FilePipeReader.Create(Backend, options, leaveOpen: false);
    }

    protected override string Code => $"{_situation} {(Pool is null ? "own" : "callers")} {_first} {_second} {Choices}";

    protected override ReadOnlySpan<Answer> TryAnswers(FileRequest operation)
        => IsCompleted ? [Answer.Full, Answer.HandOver] : [Answer.Full, Answer.Short, Answer.None, Answer.Error, Answer.HandOver];

    protected override bool MayBeginSecond => _second >= ReaderCall.CancelPendingRead || !IsCopying || IsTrying || IsCopySeen;

    protected override bool MayReportBeforeCancel => !IsCopying;

    protected override bool IsOver => _waits.TrueForAll(wait => wait.Kind == WaitKind.Completion) && !IsCompleted;

    /// <summary>A read or a copy has begun and not ended, and nothing that would end it has happened, so that another is misuse.</summary>
    private bool IsReadUnderWay
        => IsTrying || _waits.Exists(wait => wait is { Kind: WaitKind.Read, MustEnd: false } || (wait.Kind == WaitKind.Copy && IsCopySeen));

    private bool IsCopying => _waits.Concat(_calls).Any(wait => wait.Kind == WaitKind.Copy);

    /// <summary>
    /// The reader has to know of the copy: between two of its reads it does not, where the copy is that of PipeReader itself.
    /// </summary>
    private bool IsCopySeen => PendingOf(_reader) is not null;

    private bool IsOnThread => Environment.CurrentManagedThreadId == _thread;

    /// <summary>A copy that has returned its task runs. By index: a call within the copy may add a wait.</summary>
    private bool IsCopyRunning
    {
        get
        {
            bool isRunning = false;
            for (int i = 0; i < _waits.Count; i++)
            {
                isRunning |= _waits[i] is { Kind: WaitKind.Copy, IsCompleted: false } && !IsCopySeen;
            }

            return isRunning;
        }
    }

    // Dispose calls Complete and no more, and a copy repeats itself after each step.
    private static int MaxEventsOf(ReaderSituation situation, ReaderCall first, ReaderCall second)
    {
        bool copies = first == ReaderCall.CopyToAsync || second == ReaderCall.CopyToAsync;
        return first >= ReaderCall.Dispose || second >= ReaderCall.Dispose ? 1
            : MaxEvents - (copies ? 1 : 0) - (situation == ReaderSituation.CopyPending ? 2 : 0);
    }

    internal static ReaderOrder Parse(string code)
    {
        string[] parts = code.Split(' ');
        return new ReaderOrder(
            Enum.Parse<ReaderSituation>(parts[0]), parts[1] == "callers", Enum.Parse<ReaderCall>(parts[2]),
            Enum.Parse<ReaderCall>(parts[3]), Choices.Parse(parts[4]));
    }

    protected override void Begin()
    {
        switch (_situation)
        {
            case ReaderSituation.BufferOut:
                Call(ReaderCall.ReadAsync);
                break;
            case ReaderSituation.Examined:
                Call(ReaderCall.ReadAsync);
                Call(ReaderCall.AdvanceToExamined);
                break;
            case ReaderSituation.Unexamined:
                Call(ReaderCall.ReadAsync);
                Advance(Some, More);
                break;
            case ReaderSituation.ReadAhead:
                Call(ReaderCall.ReadAsync);
                Call(ReaderCall.AdvanceToExamined);
                Require(Backend.Started is not null, "it reads ahead");
                break;
            case ReaderSituation.ReadAheadAndBufferOut:
                Call(ReaderCall.ReadAsync);
                Require(Backend.Started is not null, "it reads ahead");
                break;
            case ReaderSituation.LeftBehind:
                Call(ReaderCall.ReadAsync);
                Call(ReaderCall.AdvanceToExamined);
                _handsOver = true;
                Call(ReaderCall.ReadAsync);
                Call(ReaderCall.CancelPendingRead);
                break;
            case ReaderSituation.ReadPending:
                _handsOver = true;
                Call(ReaderCall.ReadAsync);
                break;
            case ReaderSituation.CopyPending:
                _handsOver = true;
                Call(ReaderCall.CopyToAsync);
                break;
        }

        _handsOver = false;
    }

    protected override void First() => Call(_first);

    protected override void Second() => Call(_second);

    protected override void Settle()
    {
        for (int i = 0; i < _waits.Count;)
        {
            Wait wait = _waits[i];
            _letsCopyRun = true;
            SpinUntil(static state => state.Order.IsSettled(state.Wait), (Order: this, Wait: wait),
                static state => state.Order.Fail($"{state.Wait.Kind} does not end"));
            _letsCopyRun = false;
            if (wait.Kind == WaitKind.Completion && Backend.Releases > 0)
            {
                // A work item says so, a moment after the release.
                SpinUntil(static state => state.Wait.IsCompleted, (Order: this, Wait: wait),
                    static state => state.Order.Fail("CompleteAsync is not over although everything is released"));
            }

            if (wait.IsCompleted)
            {
                // Ended, and by nothing that happened: seen by what the result is checked for.
                _waits.RemoveAt(i);
                Take(wait);
            }
            else
            {
                Require(wait.Kind == WaitKind.Completion || Backend.Started is not null, "somebody waits, and nothing is under way");
                Require(wait.Kind != WaitKind.Copy || !(_isCopyCanceled || IsCompleted) || Backend.IsCancelAsked,
                    "the back end is asked to give up a copy that was canceled");
                i++;
            }
        }

        CheckBuffer();
    }

    protected override void SettleOthers()
    {
        // A copy goes on on a thread of the pool, beside the loop of the reads, until it waits again, or has the file to itself.
        if (IsOnThread)
        {
            _letsCopyRun = true;
            SpinUntil(static order => !order.IsCopyRunning, this, static order => order.Fail("A copy does not go on."));
            _letsCopyRun = false;
        }
    }

    protected override void Finish()
    {
        FinishWaits();
        if (!IsCompleted)
        {
            WriteLoop();
            Call(ReaderCall.CompleteAsync);
            FinishWaits();
        }

        CheckBuffer();
        Require(Backend.Releases == 1, "the handle is released in the end");
        Require(_waits.Count == 0, "everything has ended");
        if (Pool is not null)
        {
            Require(Pool.Rented == 0, "all memory is given back, also that of a buffer that the caller holds");
            Require(Pool.ReturnedTwice == 0, "memory is given back once");
            Require(Pool.ReturnedPinned == 0, "memory is given back when the system is done with it");
        }
    }

    protected override void OnReport(Answer answer, bool isWithinStart)
    {
        // Within Start nobody waits for it yet: whoever has started it finds it over when that returns.
        Backend.Report(answer);
    }

    protected override void OnPerformed(Answer answer)
    {
        // Who waits now; who comes while it is reported is another matter.
        Wait? read = _waits.Find(wait => wait is { Kind: WaitKind.Read, MustEnd: false })
            ?? _calls.Find(wait => wait.Kind == WaitKind.Read);
        if (read is not null && (answer is Answer.None or Answer.Error
            || (answer is not Answer.Canceled && _delivered > _examined && _delivered - _consumed >= read.MinimumSize)))
        {
            read.MustEnd = true;
        }
    }

    protected override ReadOnlySpan<Answer> ReportAnswers(FileRequest operation)
        => IsCompleted ? (Backend.IsCancelAsked ? [Answer.Full, Answer.Error, Answer.Canceled] : [Answer.Full, Answer.Error])
            : _delivered == s_source.Length ? [Answer.None]
            : [Answer.Full, Answer.Short, Answer.None, Answer.Error, Answer.Canceled];

    protected override Answer TryUnscripted() => _handsOver ? Answer.HandOver : Answer.Full;

    protected override void OnNone() => _hasEnded = true;

    protected override void OnPoolError() => EndReads();

    /// <summary>Delivers the next bytes of the source.</summary>
    protected override long Move(FileRequest operation, Answer answer)
    {
        Require(operation.Kind == FileRequestKind.Read && operation.Offset == _delivered, "each read goes on where the last one ended");
        Require(operation.Length > 0, "each read asks for bytes");
        int count = (int)Math.Min(
            Math.Min(operation.Length, answer == Answer.Short ? ShortAnswer : MaxAnswer), s_source.Length - _delivered);
        int left = count;
        foreach (TransferBuffer buffer in operation.Buffers)
        {
            int length = Math.Min(left, buffer.Memory.Length);
            s_source.AsSpan(_delivered, length).CopyTo(MemoryMarshal.AsMemory(buffer.Memory).Span);
            _delivered += length;
            left -= length;
        }

        _hasEnded |= count == 0;
        return count - left;
    }

    private void Call(ReaderCall call)
    {
        switch (call)
        {
            case ReaderCall.ReadAsync:
                Read(() => _reader.ReadAsync(Token.Token), 0);
                break;
            case ReaderCall.ReadAtLeastAsync:
                Read(() => _reader.ReadAtLeastAsync(MinimumSize, Token.Token), MinimumSize);
                break;
            case ReaderCall.TryRead:
                TryRead();
                break;
            case ReaderCall.AdvanceToEnd:
                Advance(End, End);
                break;
            case ReaderCall.AdvanceToExamined:
                Advance(Some, End);
                break;
            case ReaderCall.CopyToAsync:
                Copy();
                break;
            case ReaderCall.CancelPendingRead:
                CancelPendingRead();
                break;
            case ReaderCall.CancelToken:
                EndReads();
                _isCopyCanceled |= IsCopying;
                IsTokenCanceled = true;
                Token.Cancel();
                break;
            case ReaderCall.Complete:
                EndReads();
                IsCompleted = true;
                _reader.Complete();
                break;
            case ReaderCall.Dispose:
                EndReads();
                IsCompleted = true;
                _reader.Dispose();
                break;
            default:
                EndReads();
                IsCompleted = true;
                ValueTask completed = call == ReaderCall.CompleteAsync ? _reader.CompleteAsync() : _reader.DisposeAsync();
                _waits.Add(new Wait { Kind = WaitKind.Completion, Task = completed.AsTask() });
                break;
        }
    }

    private void Read(Func<ValueTask<ReadResult>> read, int minimumSize)
    {
        Wait wait = new() { Kind = WaitKind.Read, MinimumSize = minimumSize, MustThrow = IsCompleted || IsReadUnderWay };
        _calls.Add(wait);
        try
        {
            wait.Read = new PolledRead(read());
            _calls.Remove(wait);
            if (wait.IsCompleted)
            {
                Take(wait);
            }
            else
            {
                Require(!wait.MustThrow, "a second read is refused");
                _waits.Add(wait);
            }
        }
        catch (InvalidOperationException e) when (e is not ObjectDisposedException)
        {
            _calls.Remove(wait);
            Require(wait.MustThrow || _calls.Count > 0 || IsCopying, "a read that nothing forbids is not refused");
        }
    }

    private void TryRead()
    {
        bool mustThrow = IsCompleted || IsReadUnderWay;
        try
        {
            if (_reader.TryRead(out ReadResult result))
            {
                Require(!mustThrow, "TryRead is refused");
                Take(result);
            }
            else
            {
                Require(!mustThrow, "TryRead is refused");
            }
        }
        catch (InvalidOperationException)
        {
            Require(mustThrow || _calls.Count > 0 || IsCopying, "TryRead that nothing forbids is not refused");
        }
    }

    private void Copy()
    {
        Wait wait = new() { Kind = WaitKind.Copy, MustThrow = IsCompleted || IsReadUnderWay };
        IgnoreResults();
        _calls.Add(wait);
        try
        {
            wait.Task = _reader.CopyToAsync(_destination, Token.Token);
            Require(!wait.MustThrow || wait.Task.IsFaulted, "a copy is refused");
            _waits.Add(wait);
        }
        catch (InvalidOperationException)
        {
            Require(wait.MustThrow || _calls.Count > 1 || _waits.Exists(wait => wait.Kind == WaitKind.Copy),
                "a copy that nothing forbids is not refused");
        }

        _calls.Remove(wait);
    }

    private void CancelPendingRead()
    {
        _isCancellationDue |= _calls.Count == 0 && !_waits.Exists(wait => wait.Kind is WaitKind.Read or WaitKind.Copy) && !IsCompleted;
        _isCopyCanceled |= IsCopying;
        _cancellations++;
        EndReads();
        _reader.CancelPendingRead();
    }

    /// <summary>
    /// Advances over so many of the buffer's bytes; without one, with the positions of the last one, which were consumed, or of none.
    /// </summary>
    private void Advance(int consumed, int examined)
    {
        bool isForeign = !_isBufferOut && _bufferLength > 0;
        if (isForeign && _seen != _delivered)
        {
            // The segments may hold other bytes by now: no one could tell the position from a good one.
            SetBuffer(default);
            isForeign = false;
        }

        int length = _bufferLength;
        SequencePosition consumedTo = consumed >= length ? _end : consumed == Some ? _some : _more;
        SequencePosition examinedTo = examined >= length ? _end : examined == Some ? _some : _more;
        consumed = Math.Min(consumed, length);
        examined = Math.Min(examined, length);

        IgnoreResults();
        int start = _bufferStart;
        try
        {
            _reader.AdvanceTo(consumedTo, examinedTo);
            Require(!IsCompleted, "AdvanceTo is refused after Complete");
            if (length > 0)
            {
                Require(start + consumed >= _consumed, "AdvanceTo with a position before what was consumed is refused");
                Require(!isForeign || start + consumed > _consumed || _consumed < _delivered,
                    "AdvanceTo twice with the same end is refused");
                _consumed = start + consumed;
                _examined = Math.Max(_consumed, start + examined);
            }

            _isBufferOut = false;
        }
        catch (InvalidOperationException)
        {
            Require(IsCompleted || isForeign || IsCopying || _calls.Count > 0, "AdvanceTo that nothing forbids is not refused");
            _isBufferOut &= !IsCompleted;
        }
    }

    /// <summary>The bytes of a read that has its result and has not returned it may be consumed before.</summary>
    private void IgnoreResults()
        => _ignoresResult |= _calls.Count > 0 || _waits.Exists(wait => wait is { Kind: WaitKind.Read, MustEnd: true });

    private void EndReads()
    {
        foreach (Wait wait in _waits.Concat(_calls))
        {
            wait.MustEnd |= wait.Kind == WaitKind.Read;
        }
    }

    private bool IsSettled(Wait wait)
    {
        if (wait.IsCompleted)
        {
            return true;
        }

        switch (wait.Kind)
        {
            case WaitKind.Read:
                return !wait.MustEnd;
            case WaitKind.Copy:
                // It goes on by itself, on another thread, until it waits for the back end.
                return PendingOf(_reader) is not null
                    && Backend.Started is not null && MetOf(_reader) == 1 && !Backend.IsBusy
                    && (!(_isCopyCanceled || IsCompleted) || Backend.IsCancelAsked);
            default:
                return Backend.Releases == 0 && !_waits.Exists(other => other.Kind == WaitKind.Copy && !IsSettled(other));
        }
    }

    // Complete has given the caller's pool its memory back, also that of a buffer that a read was just about to return.
    private bool IsMemoryGivenBack => IsCompleted && Pool is not null;

    private void Take(Wait wait)
    {
        _isCopyCanceled &= wait.Kind != WaitKind.Copy;
        try
        {
            if (wait.Kind == WaitKind.Read)
            {
                ReadResult result = wait.Read!.TakeResult();
                Require(!wait.MustThrow, "a read is refused");
                Require(result.IsCanceled || result.IsCompleted || _ignoresResult || IsMemoryGivenBack
                    || result.Buffer.Length >= Math.Max(1, wait.MinimumSize), "a read has as much as it was asked for");
                Take(result);
            }
            else
            {
                wait.Task!.GetAwaiter().GetResult();
                Require(wait.Kind != WaitKind.Completion || Backend.Releases == 1, "CompleteAsync is over after everything is released");
                Require(wait.Kind != WaitKind.Copy || _hasEnded, "a copy ends at the end");
            }
        }
        catch (OperationCanceledException)
        {
            Require(IsTokenCanceled || (wait.Kind == WaitKind.Copy && _cancellations > 0), "nobody has canceled");
            _isCancellationDue &= wait.Kind != WaitKind.Copy;
        }
        catch (InvalidOperationException)
        {
            Require(IsCompleted || wait.MustThrow, "a read that nothing forbids is not refused");
        }
        catch (Exception e) when (e == FileError || e == PoolError)
        {
        }
    }

    private void Take(ReadResult result)
    {
        if (result.IsCanceled)
        {
            Require(_cancellations-- > 0, "nobody has canceled");
        }
        else
        {
            Require(!_isCancellationDue, "a cancellation is for the next read");
        }

        _isCancellationDue = false;
        Require(!result.IsCompleted || _hasEnded, "the end has not been seen");
        if (_ignoresResult || IsMemoryGivenBack)
        {
            return;
        }

        int end = _consumed + (int)result.Buffer.Length;
        Require(end <= _delivered && end >= _seen, "a buffer has everything that is not consumed");
        _seen = end;
        SetBuffer(result.Buffer);
        _isBufferOut = end > _consumed;
        CheckBuffer();
    }

    /// <summary>The positions are kept: those of a buffer that was consumed can not be asked for.</summary>
    private void SetBuffer(ReadOnlySequence<byte> buffer)
    {
        _buffer = buffer;
        _bufferStart = _consumed;
        _bufferLength = (int)buffer.Length;
        _some = buffer.GetPosition(Math.Min(Some, _bufferLength));
        _more = buffer.GetPosition(Math.Min(More, _bufferLength));
        _end = buffer.End;
    }

    /// <summary>The bytes that the caller has are what they were, unless its pool has the memory again.</summary>
    private void CheckBuffer()
    {
        if (!_isBufferOut || _ignoresResult || IsMemoryGivenBack)
        {
            return;
        }

        ReadOnlySpan<byte> expected = s_source.AsSpan(_bufferStart);
        foreach (ReadOnlyMemory<byte> memory in _buffer)
        {
            Require(expected.StartsWith(memory.Span), "the caller's buffer holds the bytes of the file, each once and in order");
            expected = expected[Math.Min(expected.Length, memory.Length)..];
        }
    }

    private void FinishWaits()
    {
        for (int i = 0; i < 100; i++)
        {
            Settle();
            if ((_waits.Count == 0 && !IsCompleted) || Backend.Started is not { } started)
            {
                return;
            }

            // What becomes of an operation that nobody waits for is part of the order; who waits gets everything.
            ReadOnlySpan<Answer> answers = ReportAnswers(started);
            Report(HasEvents && i == 0 ? answers[Choices.Choose(answers.Length)] : answers[0]);
        }

        Fail("It does not end.");
    }

    /// <summary>Reads the rest, and compares all with the source.</summary>
    private void WriteLoop()
    {
        bool isTokenCanceled = IsTokenCanceled;
        IsTokenCanceled = false;
        _ignoresResult = false;
        Exception? error = null;
        for (int i = 0; i < 100 && error is null; i++)
        {
            PolledRead task = new(_reader.ReadAsync(CancellationToken.None));
            while (!task.IsCompleted && Backend.Started is { } started)
            {
                Backend.Report(_delivered == s_source.Length ? Answer.None : Answer.Full);
                SpinUntil(static state => state.Read.IsCompleted || state.Order.Backend.Started is not null, (Order: this, Read: task),
                    static state => state.Order.Fail("A read does not end."));
            }

            SpinUntil(static read => read.IsCompleted, task, _ => Fail("A read does not end, and nothing is under way."));
            try
            {
                ReadResult result = task.TakeResult();
                Take(result);
                Advance(End, End);
                if (result.IsCompleted && _delivered == s_source.Length)
                {
                    break;
                }
            }
            catch (Exception e) when (e == FileError)
            {
                error = e;
            }
        }

        IsTokenCanceled = isTokenCanceled;
        Require(_seen == _delivered, "every byte that was delivered is seen");
        Require(error is not null || _consumed == s_source.Length, "nothing is lost");
        Require((error is null) == (FileError is null), "an error is thrown again");
    }

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_wait")]
    private static extern ref PendingResult<ReadResult>? PendingOf(FilePipeReader reader);

    // 1: the report of what was started goes on with the owner's code, on the reporting thread.
    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_met")]
    private static extern ref int MetOf(FilePipeReader reader);

    private enum WaitKind
    {
        Read,
        Copy,
        Completion,
    }

    private sealed class Wait
    {
        internal required WaitKind Kind { get; init; }

        internal PolledRead? Read { get; set; }

        internal Task? Task { get; set; }

        internal int MinimumSize { get; init; }

        /// <summary>Something has happened that ends it.</summary>
        internal bool MustEnd { get; set; }

        internal bool MustThrow { get; init; }

        internal bool IsCompleted => Task?.IsCompleted ?? Read!.IsCompleted;
    }

    /// <summary>Takes what a copy writes, compares it with the source, and never waits.</summary>
    private sealed class CopyDestination(ReaderOrder order) : PipeWriter
    {
        // One order runs at a time.
        private static readonly byte[] s_memory = new byte[64 * 1024];

        public override Memory<byte> GetMemory(int sizeHint = 0)
        {
            if (!order.IsOnThread)
            {
                SpinUntil(static order => order._letsCopyRun, order, static order => order.Fail("A copy is not let run."));
            }

            return s_memory;
        }

        public override Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;

        public override void Advance(int bytes)
        {
            order.Require(s_memory.AsSpan(0, bytes).SequenceEqual(s_source.AsSpan(order._consumed, bytes)),
                "a copy gets the bytes of the file, each once and in order");
            order._consumed += bytes;
            order._seen = Math.Max(order._seen, order._consumed);
            order._examined = Math.Max(order._examined, order._consumed);
            order._isBufferOut = false;
            order.SetBuffer(default);
        }

        public override ValueTask<FlushResult> FlushAsync(CancellationToken cancellationToken = default)
        {
            order.TrySecond("  while the destination flushes");
            return default;
        }

        public override void CancelPendingFlush()
        {
        }

        public override void Complete(Exception? exception = null)
        {
        }
    }
}
