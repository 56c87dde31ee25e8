using Pipelines.File.Waiting;

namespace FilePipelinesTests;

/// <summary>When a thread stays awake for the next call, by timestamps that the tests make up.</summary>
public sealed class LoneCallsTests
{
    private const long Soon = 50;
    private readonly LoneCalls _calls = new(Soon);
    private long _now = 1000;

    [Fact]
    public void OnAllOver_CallsComeOneByOneAndSoon_StaysAwakeFromTheThirdOn()
    {
        Assert.Equal([false, false, true, true], Enumerable.Range(0, 4).Select(_ => Call(after: Soon - 1)));
    }

    [Fact]
    public void OnAllOver_CallsComeLate_DoesNotStayAwake()
    {
        Assert.All(Enumerable.Range(0, 10), _ => Assert.False(Call(after: Soon)));
    }

    [Fact]
    public void OnAllOver_CallsBeginToComeLate_StaysAwakeForAFewMore()
    {
        CallSoon(100);
        Assert.Equal([true, true, false, false], Enumerable.Range(0, 4).Select(_ => Call(after: Soon)));
    }

    [Fact]
    public void OnAllOver_CallsComeInPairs_DoesNotStayAwake()
    {
        for (int i = 0; i < 10; i++)
        {
            _now += Soon - 1;
            _calls.OnQueued(_now, isHelped: false);
            _calls.OnQueued(_now, isHelped: false);
            Assert.False(_calls.OnAllOver(_now));
        }
    }

    [Fact]
    public void OnAllOver_TwoCallsWhereThereWasOne_DoesNotStayAwake()
    {
        CallSoon(4);
        _calls.OnQueued(_now + 1, isHelped: false);
        _calls.OnQueued(_now + 2, isHelped: false);
        Assert.False(_calls.OnAllOver(_now + 3));
    }

    [Fact]
    public void OnAllOver_AskedAgainWithoutACall_DoesNotStayAwake()
    {
        CallSoon(4);
        Assert.False(_calls.OnAllOver(_now));
    }

    [Fact]
    public void OnAllOver_OnlyCallsThatThePoolHelpsWith_DoesNotStayAwake()
    {
        CallSoon(4);
        for (int i = 0; i < 10; i++)
        {
            _calls.OnQueued(++_now, isHelped: true);
            Assert.False(_calls.OnAllOver(++_now));
        }
    }

    private void CallSoon(int times)
    {
        for (int i = 0; i < times; i++)
        {
            _ = Call(after: Soon - 1);
        }
    }

    /// <summary>A call that comes so long after the one before, and ends.</summary>
    private bool Call(long after)
    {
        _now += after;
        _calls.OnQueued(_now, isHelped: false);
        _now += 1000;
        return _calls.OnAllOver(_now);
    }
}
