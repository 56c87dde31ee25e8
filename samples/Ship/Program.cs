using ShipSample;

// dotnet run -c Release --project samples/Ship -- --to http://localhost:9000/ --logs '/var/log/app/*.log' --checkpoint position
WebApplicationBuilder builder = WebApplication.CreateSlimBuilder(args);
builder.Logging.SetMinimumLevel(LogLevel.Warning);
if (ShipSettings.From(builder.Configuration) is not { } settings)
{
    Console.Error.WriteLine("usage: Ship --to URL --logs PATH|PATTERN --checkpoint FILE [--urls http://localhost:9090]");
    return 2;
}

builder.Services.AddSingleton(settings);
builder.Services.AddSingleton<Shipper>();
builder.Services.AddHostedService(static services => services.GetRequiredService<Shipper>());
builder.Services.AddHealthChecks().AddCheck<ShipperHealth>("shipper");

// A redirected POST becomes a GET without its lines, so a redirection is a failure: the address is to be corrected.
builder.Services.AddHttpClient(nameof(Shipper), static client => client.Timeout = TimeSpan.FromSeconds(10))
    .ConfigurePrimaryHttpMessageHandler(static () => new SocketsHttpHandler { AllowAutoRedirect = false });
WebApplication app = builder.Build();
app.MapHealthChecks("/health");
Shipper shipper = app.Services.GetRequiredService<Shipper>();
await app.RunAsync();
return shipper.ExecuteTask is { IsFaulted: true } ? 1 : 0;
