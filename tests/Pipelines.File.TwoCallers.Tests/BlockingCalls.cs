namespace FilePipelines.TwoCallers.Tests;

/// <summary>Threads for calls that block until another one lets them go.</summary>
internal sealed class BlockingCalls
{
    private readonly Stack<Caller> _idle = new();

    internal static BlockingCalls Shared { get; } = new();

    /// <summary>Begins the call, and returns when it has ended, or waits.</summary>
    internal Caller Begin(Action call)
    {
        Caller? caller;
        lock (_idle)
        {
            if (!_idle.TryPop(out caller))
            {
                caller = new Caller(this);
            }
        }

        caller.Begin(call);
        return caller;
    }

    internal sealed class Caller
    {
        private readonly BlockingCalls _calls;
        private readonly Thread _thread;

        // Guards _call.
        private readonly object _lock = new();
        private Action? _call;
        private Exception? _error;
        private volatile bool _isRunning;
        private volatile bool _isCompleted;

        internal Caller(BlockingCalls calls)
        {
            _calls = calls;
            _thread = new Thread(Run) { IsBackground = true, Name = "A call that blocks" };
            _thread.Start();
        }

        internal bool IsCompleted => _isCompleted;

        /// <summary>The call has begun, and its thread waits.</summary>
        internal bool IsWaiting => _isRunning && (_thread.ThreadState & ThreadState.WaitSleepJoin) != 0;

        internal void Begin(Action call)
        {
            _isCompleted = false;
            _error = null;
            lock (_lock)
            {
                _call = call;
                Monitor.Pulse(_lock);
            }
        }

        /// <summary>What it threw. The thread is for another call from here on.</summary>
        internal Exception? End()
        {
            Exception? error = _error;
            lock (_calls._idle)
            {
                _calls._idle.Push(this);
            }

            return error;
        }

        private void Run()
        {
            while (true)
            {
                Action call;
                lock (_lock)
                {
                    while (_call is null)
                    {
                        Monitor.Wait(_lock);
                    }

                    call = _call;
                    _call = null;
                }

                _isRunning = true;
                try
                {
                    call();
                }
                catch (Exception e)
                {
                    _error = e;
                }

                _isRunning = false;
                _isCompleted = true;
            }
        }
    }
}
