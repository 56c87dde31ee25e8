using Pipelines.File;

namespace ShipSample;

/// <summary>Sends the lines of logs to a server, in batches, each until the server has it. Then it saves the position.</summary>
/// <remarks>
/// When the service stops, the batch that is being sent is sent to its end, so it is not sent again at the next start. A service that is
/// killed sends its last batch again; the header Idempotency-Key, which is the position behind the batch, lets the server see that.
/// </remarks>
internal sealed partial class Shipper(ShipSettings settings, IHttpClientFactory clients, ILogger<Shipper> logger) : BackgroundService
{
    private static readonly TimeSpan s_firstPause = TimeSpan.FromSeconds(0.2);
    private static readonly TimeSpan s_longestPause = TimeSpan.FromSeconds(30);

    private LogFollower? _follower;
    private volatile string? _problem;

    /// <summary>Why the last attempt to send has failed; <see langword="null"/>: it has not.</summary>
    internal string? Problem => _problem;

    internal LogFollowerStatistics Statistics => _follower?.GetStatistics() ?? default;

    protected override async Task ExecuteAsync(CancellationToken stoppingToken)
    {
        CheckpointFile position = await CheckpointFile.OpenAsync(settings.Checkpoint, durable: true, stoppingToken);
        await SaveBeginningsAsync(position, stoppingToken);
        _follower = new LogFollower(settings.Logs, new LogFollowerOptions
        {
            Checkpoints = position.Checkpoints,
            OnUnreadable = (path, error) => LogUnreadable(path, error.Message),
        });
        try
        {
            await foreach (FollowedBatch batch in _follower.ReadBatchesAsync(
                ShipSettings.MaxLines, ShipSettings.MaxBytes, ShipSettings.MaxDelay, stoppingToken))
            {
                if (batch.Lines[0].IsAfterGap)
                {
                    LogGap(batch.Path);
                }

                await SendAsync(batch, stoppingToken);
                await position.SaveAsync(batch, CancellationToken.None);
            }
        }
        catch (OperationCanceledException) when (stoppingToken.IsCancellationRequested)
        {
            // The service stops.
        }
    }

    /// <summary>
    /// Saves the beginning of each log that is there and new. Otherwise, if the service is killed before it has sent the first batch of a
    /// log, and the log is rotated before the next start, nobody knows that the rotated file was not read.
    /// </summary>
    private async Task SaveBeginningsAsync(CheckpointFile position, CancellationToken stoppingToken)
    {
        string logs = Path.GetFullPath(settings.Logs);
        DirectoryInfo folder = new(Path.GetDirectoryName(logs) ?? logs);
        try
        {
            foreach (FileInfo log in folder.Exists ? folder.EnumerateFiles(Path.GetFileName(logs)) : [])
            {
                if (!position.Checkpoints.ContainsKey(log.FullName) && FileIdentity.TryGet(log.FullName, out FileIdentity identity))
                {
                    position.Set(log.FullName, new FileCheckpoint(identity, 0));
                }
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // The follower tries it again.
            LogUnreadable(settings.Logs, e.Message);
        }

        await position.SaveAsync(stoppingToken);
    }

    private async Task SendAsync(FollowedBatch batch, CancellationToken stoppingToken)
    {
        byte[] body = BodyOf(batch);
        for (TimeSpan pause = s_firstPause; ; pause = pause * 2 < s_longestPause ? pause * 2 : s_longestPause)
        {
            try
            {
                using HttpClient client = clients.CreateClient(nameof(Shipper));
                using HttpRequestMessage request = new(HttpMethod.Post, settings.To) { Content = new ByteArrayContent(body) };
                request.Headers.Add("Log-Path", Uri.EscapeDataString(batch.Path));
                request.Headers.Add("Idempotency-Key", $"{batch.Checkpoint}");

                // Not the token: a batch on its way is sent to its end. The client has a timeout.
                using HttpResponseMessage response = await client.SendAsync(request, CancellationToken.None);
                response.EnsureSuccessStatusCode();
                _problem = null;
                return;
            }
            catch (Exception e) when (e is HttpRequestException or TaskCanceledException)
            {
                _problem = e.Message;
                LogRetry(batch.Path, pause, e.Message);
            }

            await Task.Delay(pause, stoppingToken);
        }
    }

    private static byte[] BodyOf(FollowedBatch batch)
    {
        byte[] body = new byte[batch.Lines.Sum(static line => line.Bytes.Length + 1)];
        int end = 0;
        foreach (FollowedLine line in batch.Lines)
        {
            line.Bytes.Span.CopyTo(body.AsSpan(end));
            end += line.Bytes.Length;
            body[end++] = (byte)'\n';
        }

        return body;
    }

    [LoggerMessage(LogLevel.Warning, "A batch of {Path} was not taken, next attempt after {Pause}: {Problem}")]
    private partial void LogRetry(string path, TimeSpan pause, string problem);

    [LoggerMessage(LogLevel.Warning, "Lines of {Path} may be missing.")]
    private partial void LogGap(string path);

    [LoggerMessage(LogLevel.Warning, "{Path} cannot be read: {Problem}")]
    private partial void LogUnreadable(string path, string problem);
}
