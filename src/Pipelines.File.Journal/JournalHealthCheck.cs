using Microsoft.Extensions.Diagnostics.HealthChecks;

namespace Pipelines.File;

/// <summary>Says whether a journal takes records.</summary>
internal sealed class JournalHealthCheck(Journal journal) : IHealthCheck
{
    public Task<HealthCheckResult> CheckHealthAsync(HealthCheckContext context, CancellationToken cancellationToken = default)
    {
        string told = journal.ToString();
        return Task.FromResult(
            journal.Error is { } error ? new HealthCheckResult(context.Registration.FailureStatus, told, error)
            : journal.IsClosed ? new HealthCheckResult(context.Registration.FailureStatus, told)
            : journal.RetentionError is { } retention ? HealthCheckResult.Degraded(told, retention)
            : HealthCheckResult.Healthy(told));
    }
}
