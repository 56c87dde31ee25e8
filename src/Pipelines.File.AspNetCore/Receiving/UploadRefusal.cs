using System.Text.Json;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Mvc;
using Microsoft.AspNetCore.WebUtilities;
using Microsoft.Extensions.DependencyInjection;

namespace Pipelines.File.AspNetCore;

/// <summary>An upload that was refused, which any client can cause: the answer to it, where the application gives none.</summary>
/// <param name="Reason">What was thrown.</param>
/// <param name="Status">The status of the answer.</param>
/// <param name="Kind">What the failure is counted as.</param>
/// <param name="Detail">What the client is told of it; <see langword="null"/> where that may be for the application only.</param>
internal sealed record UploadRefusal(Exception Reason, int Status, string Kind, string? Detail)
{
    /// <summary>What a request was refused for, if that is what <paramref name="reason"/> tells and nothing was answered yet.</summary>
    internal static UploadRefusal? Of(HttpContext context, Exception reason)
        => context.Items[typeof(UploadRefusal)] is UploadRefusal refusal && refusal.Reason == reason && !context.Response.HasStarted
            ? refusal : null;

    /// <summary>The status of what an upload has failed for; <see langword="null"/>: it is no refusal.</summary>
    internal static int? StatusOf(Exception reason) => reason switch
    {
        BadHttpRequestException refused => refused.StatusCode,
        FileExistsException => StatusCodes.Status409Conflict,
        PathTooLongException => StatusCodes.Status400BadRequest,
        IOException e when FullDisk.IsReasonOf(e) => StatusCodes.Status507InsufficientStorage,
        _ => null,
    };

    /// <summary>Answers with problem details (RFC 9457): those of the application, if it makes such.</summary>
    internal async Task AnswerAsync(HttpContext context)
    {
        HttpResponse response = context.Response;
        response.StatusCode = Status;
        response.ContentLength = null;
        response.Headers.ETag = default;
        response.Headers.LastModified = default;
        response.Headers.CacheControl = "no-store";
        if (context.RequestServices?.GetService<IProblemDetailsService>() is { } service)
        {
            ProblemDetails problem = new() { Status = Status, Title = ReasonPhrases.GetReasonPhrase(Status), Detail = Detail };
            if (await service.TryWriteAsync(new ProblemDetailsContext { HttpContext = context, ProblemDetails = problem })
                .ConfigureAwait(false))
            {
                return;
            }
        }

        using MemoryStream body = new();
        using (Utf8JsonWriter json = new(body))
        {
            json.WriteStartObject();
            json.WriteString("type", "about:blank");
            json.WriteString("title", ReasonPhrases.GetReasonPhrase(Status));
            json.WriteNumber("status", Status);
            if (Detail is not null)
            {
                json.WriteString("detail", Detail);
            }

            json.WriteEndObject();
        }

        response.ContentType = "application/problem+json";
        response.ContentLength = body.Length;
        await response.Body.WriteAsync(body.GetBuffer().AsMemory(0, (int)body.Length), context.RequestAborted).ConfigureAwait(false);
    }
}
