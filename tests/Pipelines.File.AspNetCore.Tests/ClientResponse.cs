using System.Net.Http.Headers;
using Pipelines.File.Threading;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>One response as HttpClient sees it, but for the Date header; the body as its length and hash.</summary>
public sealed record ClientResponse(string Head, long BodyLength, string BodyHash)
{
    public static async Task<ClientResponse> GetAsync(HttpClient client, HttpMethod method, string target, params string[] headers)
    {
        CancellationToken cancellationToken = TestContext.Current.CancellationToken;
        using HttpRequestMessage request =
            new(method, target) { Version = client.DefaultRequestVersion, VersionPolicy = HttpVersionPolicy.RequestVersionExact };
        foreach (string header in headers)
        {
            string[] parts = header.Split(": ", 2);
            request.Headers.TryAddWithoutValidation(parts[0], parts[1]);
        }

        using HttpResponseMessage response = await SendAsync(client, request, cancellationToken);
        await using Stream body = await response.Content.ReadAsStreamAsync(cancellationToken);
        using IncrementalHash hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
        byte[] buffer = new byte[64 * 1024];
        long length = 0;
        int read;
        while ((read = await body.ReadAsync(buffer, cancellationToken)) > 0)
        {
            hash.AppendData(buffer, 0, read);
            length += read;
        }

        IEnumerable<string> lines = Lines(response.Headers).Concat(Lines(response.Content.Headers)).Order(StringComparer.Ordinal);
        return new ClientResponse($"{response.Version} {(int)response.StatusCode}\n{string.Join('\n', lines)}", length,
            Convert.ToHexString(hash.GetHashAndReset()));
    }

    // Without an answer for long, the threads tell why: while work items complete, the pool has too few threads for what the machine does;
    // if calls are queued and nobody performs them, a wake-up was lost.
    private static async Task<HttpResponseMessage> SendAsync(
        HttpClient client, HttpRequestMessage request, CancellationToken cancellationToken)
    {
        Task<HttpResponseMessage> sending = client.SendAsync(request, HttpCompletionOption.ResponseHeadersRead, cancellationToken);
        while (true)
        {
            try
            {
                return await sending.WaitAsync(Eventually.Limit, cancellationToken);
            }
            catch (TimeoutException)
            {
                IReadOnlyList<WaitingThreads> waiting = WaitingThreads.All;
                TestContext.Current.SendDiagnosticMessage(
                    $"No answer for {request.RequestUri}. Pool: {ThreadPool.ThreadCount} threads, {ThreadPool.PendingWorkItemCount} items "
                    + $"queued, {ThreadPool.CompletedWorkItemCount} completed. Waiting threads: "
                    + $"{waiting.Sum(threads => threads.ThreadCount)}, {waiting.Sum(threads => threads.QueuedCount)} calls queued, "
                    + $"{waiting.Sum(threads => threads.UnderWayCount)} under way.");
            }
        }
    }

    private static IEnumerable<string> Lines(HttpHeaders headers)
        => headers.NonValidated.Where(header => header.Key != "Date").Select(header => $"{header.Key}: {header.Value}");
}
