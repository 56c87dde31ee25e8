using System.Globalization;
using Microsoft.Extensions.Diagnostics.HealthChecks;
using Pipelines.File;

namespace ShipSample;

/// <summary>Unhealthy if the shipper has ended; degraded while the server does not take what is sent.</summary>
internal sealed class ShipperHealth(Shipper shipper) : IHealthCheck
{
    public Task<HealthCheckResult> CheckHealthAsync(HealthCheckContext context, CancellationToken cancellationToken = default)
    {
        LogFollowerStatistics now = shipper.Statistics;
        string state = string.Create(CultureInfo.InvariantCulture,
            $"{now.Files} files, {now.BytesBehind} bytes behind, {now.Lines} lines, {now.Gaps} gaps");
        return Task.FromResult(shipper.ExecuteTask is { IsFaulted: true } ended
            ? HealthCheckResult.Unhealthy(state, ended.Exception)
            : shipper.Problem is { } problem ? HealthCheckResult.Degraded($"{state}: {problem}") : HealthCheckResult.Healthy(state));
    }
}
