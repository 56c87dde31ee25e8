namespace FilePipelines.AspNetCore.Tests;

/// <summary>What a server has logged as an error or a warning, or from another level on.</summary>
public sealed class TestLog(LogLevel from = LogLevel.Warning) : ILoggerProvider, ILogger
{
    private readonly ConcurrentQueue<string> _lines = new();

    public IReadOnlyCollection<string> Lines => _lines;

    public ILogger CreateLogger(string categoryName) => this;

    public IDisposable? BeginScope<TState>(TState state) where TState : notnull => null;

    public bool IsEnabled(LogLevel logLevel) => logLevel >= from;

    public void Log<TState>(
        LogLevel logLevel, EventId eventId, TState state, Exception? exception, Func<TState, Exception?, string> formatter)
    {
        // Kestrel warns of a busy machine.
        if (IsEnabled(logLevel) && eventId.Name != "HeartbeatSlow")
        {
            _lines.Enqueue($"{formatter(state, exception)} {exception}");
        }
    }

    public void Dispose()
    {
    }
}
