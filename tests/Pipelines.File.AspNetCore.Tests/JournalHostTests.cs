using Microsoft.Extensions.Diagnostics.HealthChecks;
using Microsoft.Extensions.Hosting;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>Journals that a host opens and closes.</summary>
public sealed class JournalHostTests : IDisposable
{
    private readonly string _folder = Directory.CreateTempSubdirectory("pipelines-file-").FullName;
    private readonly CancellationToken _stop = TestContext.Current.CancellationToken;

    public void Dispose() => Directory.Delete(_folder, recursive: true);

    [Fact]
    public async Task AddJournal_TwoOfThem_AreOpenedForServicesAndClosedAfterThem()
    {
        HostApplicationBuilder builder = Host.CreateEmptyApplicationBuilder(null);
        builder.Services.AddHostedService<Appender>();
        builder.Services.AddJournal("orders", options => options.Folder = Path.Combine(_folder, "orders"));
        builder.Services.AddJournal("mails", options => options.Folder = Path.Combine(_folder, "mails"));
        Journal orders;
        using (IHost host = builder.Build())
        {
            await host.StartAsync(_stop);
            orders = host.Services.GetRequiredKeyedService<Journal>("orders");
            Assert.NotEqual(orders.Id, host.Services.GetRequiredKeyedService<Journal>("mails").Id);
            HealthCheckService health = host.Services.GetRequiredService<HealthCheckService>();
            HealthReport report = await health.CheckHealthAsync(_stop);
            Assert.Equal(["mails", "orders"], report.Entries.Keys.Order(StringComparer.Ordinal));
            Assert.Equal(HealthStatus.Healthy, report.Status);
            await host.StopAsync(_stop);
            Assert.Equal(HealthStatus.Unhealthy, (await health.CheckHealthAsync(_stop)).Status);
        }

        await Assert.ThrowsAsync<ObjectDisposedException>(async () => await orders.AppendAsync(new byte[1], _stop));
        JournalSummary summary = await Journal.VerifyAsync(Path.Combine(_folder, "orders"), cancellationToken: _stop);
        Assert.Equal((2, 0), (summary.NextSequence, summary.TornBytes));
    }

    [Theory]
    [InlineData(true), InlineData(false)]
    public async Task AddJournal_AnotherServiceDoesNotStart_IsClosedWithTheHost(bool isAsync)
    {
        HostApplicationBuilder builder = Host.CreateEmptyApplicationBuilder(null);
        builder.Services.AddJournal("orders", options => options.Folder = Path.Combine(_folder, "orders"));
        builder.Services.AddHostedService<Unable>();
        IHost host = builder.Build();
        await Assert.ThrowsAsync<NotSupportedException>(() => host.StartAsync(_stop));
        if (isAsync)
        {
            await ((IAsyncDisposable)host).DisposeAsync();
        }
        else
        {
            host.Dispose();
        }

        await using Journal next = await Journal.OpenAsync(Path.Combine(_folder, "orders"), cancellationToken: _stop);
        Assert.Equal(0, await next.AppendAsync(new byte[1], _stop));
    }

    [Fact]
    public async Task AddJournal_FolderIsAnotherProgramsAtFirst_OpensWhenItIsAskedForAgain()
    {
        string folder = Path.Combine(_folder, "orders");
        Journal other = await Journal.OpenAsync(folder, cancellationToken: _stop);
        await using ServiceProvider services = new ServiceCollection().AddJournal("orders", options => options.Folder = folder)
            .BuildServiceProvider();
        Assert.ThrowsAny<IOException>(() => services.GetRequiredKeyedService<Journal>("orders"));
        await other.DisposeAsync();
        Assert.Equal(0, await services.GetRequiredKeyedService<Journal>("orders").AppendAsync(new byte[1], _stop));
    }

    /// <summary>Another process has the journal when this one starts, as when one takes over from another.</summary>
    [Fact]
    public async Task AddJournal_ItCannotBeOpenedYet_TheHealthCheckTellsAndItIsOpenedLater()
    {
        string folder = Path.Combine(_folder, "orders");
        Journal other = await Journal.OpenAsync(folder, cancellationToken: _stop);
        HostApplicationBuilder builder = Host.CreateEmptyApplicationBuilder(null);
        builder.Services.AddJournal("orders", options => options.Folder = folder);
        using IHost host = builder.Build();
        HealthCheckService health = host.Services.GetRequiredService<HealthCheckService>();
        await Assert.ThrowsAsync<IOException>(() => host.StartAsync(_stop));
        Assert.Throws<IOException>(() => host.Services.GetRequiredKeyedService<Journal>("orders"));
        HealthReportEntry entry = (await health.CheckHealthAsync(_stop)).Entries["orders"];
        Assert.Equal(HealthStatus.Unhealthy, entry.Status);
        Assert.Contains("open for writing already", entry.Exception!.Message, StringComparison.Ordinal);

        await other.DisposeAsync();
        Assert.Equal(HealthStatus.Healthy, (await health.CheckHealthAsync(_stop)).Status);
        Journal journal = host.Services.GetRequiredKeyedService<Journal>("orders");
        Assert.Equal(0, await journal.AppendAsync(new byte[1], _stop));
        await host.StopAsync(_stop);
        Assert.Equal(HealthStatus.Unhealthy, (await health.CheckHealthAsync(_stop)).Status);
    }

    /// <summary>It was never open: stopping has nothing to close, and nothing opens it afterwards.</summary>
    [Fact]
    public async Task AddJournal_ItWasNeverOpen_StoppingThrowsNothingAndNothingOpensItLater()
    {
        string folder = Path.Combine(_folder, "orders");
        await File.WriteAllBytesAsync(folder, [], _stop);
        HostApplicationBuilder builder = Host.CreateEmptyApplicationBuilder(null);
        builder.Services.AddJournal("orders", options => options.Folder = folder);
        using IHost host = builder.Build();
        await Assert.ThrowsAsync<IOException>(() => host.StartAsync(_stop));
        await host.StopAsync(_stop);
        File.Delete(folder);
        HealthReport report = await host.Services.GetRequiredService<HealthCheckService>().CheckHealthAsync(_stop);
        Assert.Equal(HealthStatus.Unhealthy, report.Status);
        Assert.False(Directory.Exists(folder));
    }

    /// <summary>The second one would replace the first one without a word. Health checks ignore case, and no host would start.</summary>
    [Theory]
    [InlineData("orders"), InlineData("Orders")]
    public void AddJournal_TheNameIsAddedAlready_Throws(string name)
    {
        IServiceCollection services = new ServiceCollection().AddJournal("orders").AddJournal("mails");
        ArgumentException e = Assert.Throws<ArgumentException>(
            () => services.AddJournal(name, options => options.Folder = Path.Combine(_folder, "orders")));
        Assert.Contains($"'{name}'", e.Message, StringComparison.Ordinal);
    }

    private sealed class Unable : IHostedService
    {
        public Task StartAsync(CancellationToken cancellationToken) => throw new NotSupportedException();

        public Task StopAsync(CancellationToken cancellationToken) => Task.CompletedTask;
    }

    /// <summary>It gets the journal before the host has started anything, and appends until it has stopped.</summary>
    private sealed class Appender([FromKeyedServices("orders")] Journal orders) : IHostedService
    {
        public Task StartAsync(CancellationToken cancellationToken) => orders.AppendAsync("start"u8.ToArray(), cancellationToken).AsTask();

        public Task StopAsync(CancellationToken cancellationToken) => orders.AppendAsync("stop"u8.ToArray(), cancellationToken).AsTask();
    }
}
