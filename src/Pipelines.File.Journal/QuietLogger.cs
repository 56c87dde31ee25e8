using System.Diagnostics.CodeAnalysis;
using Microsoft.Extensions.Logging;

namespace Pipelines.File;

/// <summary>A logger that throws, as one that is disposed may, concerns no journal: what it throws is dropped.</summary>
internal sealed class QuietLogger(ILogger logger) : ILogger
{
    public IDisposable? BeginScope<TState>(TState state)
        where TState : notnull => logger.BeginScope(state);

    // Asked below.
    public bool IsEnabled(LogLevel logLevel) => true;

    [SuppressMessage("Design", "CA1031:Do not catch general exception types", Justification = "There is nobody to tell.")]
    public void Log<TState>(
        LogLevel logLevel, EventId eventId, TState state, Exception? exception, Func<TState, Exception?, string> formatter)
    {
        try
        {
            if (logger.IsEnabled(logLevel))
            {
                logger.Log(logLevel, eventId, state, exception, formatter);
            }
        }
        catch (Exception)
        {
        }
    }
}
