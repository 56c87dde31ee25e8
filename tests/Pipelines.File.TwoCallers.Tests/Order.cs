using System.Text;
using Pipelines.File.IO;
using Pipelines.File.Memory;

namespace FilePipelines.TwoCallers.Tests;

/// <summary>
/// One order of two calls and of what a scripted back end does meanwhile. The second call comes after the first has begun: within it,
/// wherever the reader or the writer has let go of its lock and called the back end or the caller's memory pool, or after it, before or
/// after each event. As no lock is held there, a call that comes from within is what a call from another thread would be.
/// </summary>
internal abstract class Order : IDisposable
{
    /// <summary>Answers of the back end that an order tries all of; from there on it answers with all bytes.</summary>
    protected const int MaxEvents = 4;

    private readonly List<string> _story = [];
    private readonly int _maxEvents;
    private string? _failure;
    private int _events;
    private bool _isScripted;
    private bool _isSecondBegun;

    protected Order(Choices choices, bool hasCallersPool, int maxEvents, bool canSeek = false)
    {
        Choices = choices;
        _maxEvents = maxEvents;
        Backend = new ScriptedBackend(this, canSeek);
        Pool = hasCallersPool ? new HostilePool { OnCall = OnPoolCall } : null;
    }

    /// <summary>The order that runs, for the message of a process that dies of it.</summary>
    internal static Order? Running { get; private set; }

    protected Choices Choices { get; }

    protected ScriptedBackend Backend { get; }

    protected CheckedPool? Pool { get; }

    protected CancellationTokenSource Token { get; } = new();

    protected bool IsTokenCanceled { get; set; }

    protected bool IsCompleted { get; set; }

    protected Exception? FileError { get; private set; }

    /// <summary>What the caller's memory pool threw in this order.</summary>
    protected Exception? PoolError { get; private set; }

    /// <summary>The back end or the pool was called while a call that does not wait was under way.</summary>
    protected bool IsTrying { get; private set; }

    protected bool HasEvents => _events < _maxEvents;

    /// <summary>How this order is run again.</summary>
    protected abstract string Code { get; }

    internal void Require(bool holds, string what)
    {
        if (!holds)
        {
            Fail("Not so: " + what);
        }
    }

    internal void Fail(string what) => _failure ??= $"{what} (after: {_story.LastOrDefault()?.Trim()})";

    internal void Note(string what) => _story.Add(what);

    /// <exception cref="Xunit.Sdk.XunitException">An invariant was hurt.</exception>
    internal void Run()
    {
        Running = this;
        try
        {
            Begin();
            Settle();
            _isScripted = true;
            Note("the first call");
            First();
            Settle();
            while (_failure is null && TryStep())
            {
                Settle();
            }

            _isScripted = false;
            Note("the rest");
            Finish();
        }
        catch (Exception e) when (e is not Xunit.Sdk.XunitException)
        {
            Fail(e.ToString());
        }

        if (_failure is not null)
        {
            Assert.Fail(ToString());
        }
    }

    public override string ToString()
    {
        StringBuilder text = new();
        text.AppendLine(_failure).Append("Replay: [InlineData(\"").Append(Code).AppendLine("\")]");
        foreach (string step in _story)
        {
            text.Append("  ").AppendLine(step);
        }

        return text.ToString();
    }

    public void Dispose() => Token.Dispose();

    // What the back end asks.

    internal Answer Try(FileRequest operation, bool mayWait)
    {
        if (!_isScripted)
        {
            return TryUnscripted();
        }

        if (Backend.CanSeek && !_isSecondBegun)
        {
            OnFirstStarts();
        }

        bool wasTrying = IsTrying;
        IsTrying = true;
        TrySecond("  within the call that does not wait");
        IsTrying = wasTrying;
        if (!HasEvents)
        {
            return mayWait && !Backend.CanSeek ? Answer.HandOver : Answer.Full;
        }

        ReadOnlySpan<Answer> answers = TryAnswers(operation);
        Answer answer = answers[Choices.Choose(answers.Length)];
        _events++;
        Note(answer switch
        {
            Answer.Full => "  answered inline: all",
            Answer.Short => "  answered inline: some",
            Answer.None => "  answered inline: none",
            Answer.Error => "  answered inline: an error",
            _ => "  handed over",
        });
        return answer;
    }

    internal void BeforeStart()
    {
        SettleOthers();
        if (_isScripted && !_isSecondBegun)
        {
            OnFirstStarts();
        }

        TrySecond("  between the hand-over and Start");
    }

    internal void AfterStart()
    {
        TrySecond("  within Start");
        if (_isScripted && HasEvents && Backend.Started is { } started)
        {
            ReadOnlySpan<Answer> answers = ReportAnswers(started);
            int choice = Choices.Choose(answers.Length + 1);
            if (choice > 0)
            {
                Note("  within Start, from another thread:");
                Report(answers[choice - 1], isWithinStart: true);
            }
        }
    }

    internal void BeforeCancel()
    {
        TrySecond("  before the back end hears of the cancellation");
        if (_isScripted && HasEvents && MayReportBeforeCancel && Backend.Started is not null && Choices.Choose(2) == 1)
        {
            Note("  the cancellation comes too late:");
            Report(Answer.Short);
        }
    }

    internal void BeforeRelease() => TrySecond("  while the handle is released");

    internal void Perform(FileRequest operation, Answer answer)
    {
        if (Pool is null)
        {
            Scribble();
        }

        switch (answer)
        {
            case Answer.Full or Answer.Short:
                operation.Finish(Move(operation, answer));
                break;
            case Answer.None:
                OnNone();
                operation.Finish(0);
                break;
            case Answer.Error:
                operation.Finish(FileError ??= new IOException("scripted"));
                break;
            default:
                operation.FinishCanceled();
                break;
        }

        OnPerformed(answer);
    }

    protected abstract ReadOnlySpan<Answer> TryAnswers(FileRequest operation);

    protected abstract void Begin();

    protected abstract void First();

    protected abstract void Second();

    /// <summary>The first call has come so far that it hands an operation over.</summary>
    protected virtual void OnFirstStarts()
    {
    }

    /// <summary>Waits until nothing happens by itself any more, and takes what has ended.</summary>
    protected abstract void Settle();

    /// <summary>Waits until no other thread does anything, so that an order is one thread's at any moment.</summary>
    protected virtual void SettleOthers()
    {
    }

    /// <summary>Ends what is unfinished and checks what is left.</summary>
    protected abstract void Finish();

    /// <summary>The system is done with what is started.</summary>
    protected abstract void OnReport(Answer answer, bool isWithinStart);

    /// <summary>The operation is finished, and its owner does not know it yet.</summary>
    protected abstract void OnPerformed(Answer answer);

    protected abstract ReadOnlySpan<Answer> ReportAnswers(FileRequest operation);

    protected abstract Answer TryUnscripted();

    protected abstract long Move(FileRequest operation, Answer answer);

    protected abstract void OnNone();

    protected void Report(Answer answer, bool isWithinStart = false)
    {
        _events++;
        Note(answer switch
        {
            Answer.Full => "reported: all",
            Answer.Short => "reported: some",
            Answer.None => "reported: none",
            Answer.Error => "reported: an error",
            _ => "reported: canceled",
        });
        OnReport(answer, isWithinStart);
    }

    protected void TrySecond(string where)
    {
        if (_isScripted && !_isSecondBegun && MayBeginSecond && Choices.Choose(2) == 1)
        {
            Note(where);
            BeginSecond();
        }
    }

    /// <summary>Uses every segment of the own pool that nobody should have, so that whoever has one sees it.</summary>
    private static void Scribble()
    {
        FileSegment? rented = null;
        for (int i = 0; i < 6; i++)
        {
            FileSegment segment = SegmentPool.Shared.Rent(SegmentPool.MinSize);
            segment.Buffer.Span.Fill(0xDD);
            segment.NextSegment = rented;
            rented = segment;
        }

        _ = SegmentPool.Shared.Return(rented);
    }

    protected static void SpinUntil<T>(Func<T, bool> isTrue, T state, Action<T> onTimeout)
    {
        long end = 0;
        for (int i = 0; !isTrue(state); i++)
        {
            if (i < 30)
            {
                Thread.SpinWait(20);
            }
            else if (i < 2000)
            {
                Thread.Yield();
            }
            else
            {
                end = end == 0 ? Environment.TickCount64 + 180_000 : end;
                if (Environment.TickCount64 > end)
                {
                    onTimeout(state);
                    return;
                }

                Thread.Sleep(0);
            }
        }
    }

    /// <summary>The next step: the second call, or an event. <see langword="false"/>: there is none.</summary>
    private bool TryStep()
    {
        ReadOnlySpan<Answer> answers = HasEvents && Backend.Started is { } started && !IsOver ? ReportAnswers(started) : default;
        if (_isSecondBegun && answers.IsEmpty)
        {
            return false;
        }

        int choice = answers.IsEmpty ? 0 : Choices.Choose(answers.Length + (_isSecondBegun ? 0 : 1));
        if (choice < answers.Length)
        {
            if (answers.IsEmpty)
            {
                BeginSecond();
            }
            else
            {
                Report(answers[choice]);
            }
        }
        else
        {
            BeginSecond();
        }

        return true;
    }

    /// <summary>Whether two calls of which one comes here are two that overlap, and not one within a loop of such.</summary>
    protected abstract bool MayBeginSecond { get; }

    /// <summary>Whether nothing that a report sets going runs beside the call that cancels.</summary>
    protected virtual bool MayReportBeforeCancel => true;

    /// <summary>Both calls have ended, so that whatever comes is what comes after any call.</summary>
    protected abstract bool IsOver { get; }

    private void BeginSecond()
    {
        _isSecondBegun = true;
        Note("the second call");
        Second();
    }

    private void OnPoolCall(CheckedPool.Part part)
    {
        if (part != CheckedPool.Part.Rent)
        {
            return;
        }

        SettleOthers();
        if (!_isScripted)
        {
            return;
        }

        TrySecond("  while the pool is asked for memory");
        if (HasEvents && PoolError is null && Choices.Choose(2) == 1)
        {
            _events++;
            Note("  the pool throws");
            PoolError = new InsufficientMemoryException("scripted");
            OnPoolError();
            throw PoolError;
        }
    }

    protected abstract void OnPoolError();
}
