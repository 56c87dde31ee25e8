using System.Diagnostics.CodeAnalysis;
using Microsoft.Extensions.Diagnostics.HealthChecks;

namespace Pipelines.File;

/// <summary>Says whether a journal takes records. One that could not be opened is opened, if that is possible by now.</summary>
internal sealed class JournalHealthCheck(JournalHost host) : IHealthCheck
{
    [SuppressMessage("Design", "CA1031:Do not catch general exception types", Justification = "The result tells the error.")]
    public async Task<HealthCheckResult> CheckHealthAsync(HealthCheckContext context, CancellationToken cancellationToken = default)
    {
        HealthStatus failed = context.Registration.FailureStatus;
        try
        {
            Journal journal = await host.OpenAsync().WaitAsync(cancellationToken).ConfigureAwait(false);
            string told = journal.ToString();
            return journal.Error is { } error ? new HealthCheckResult(failed, told, error)
                : journal.IsClosed ? new HealthCheckResult(failed, told)
                : journal.RetentionError is { } retention ? HealthCheckResult.Degraded(told, retention)
                : HealthCheckResult.Healthy(told);
        }
        catch (Exception e) when (!cancellationToken.IsCancellationRequested)
        {
            return new HealthCheckResult(failed, $"not open: {e.Message}", e);
        }
    }
}
