using Microsoft.AspNetCore.Http;
using Microsoft.Net.Http.Headers;

namespace Pipelines.File.AspNetCore;

/// <summary>The preconditions on the file that an upload replaces: If-Match and If-None-Match (RFC 9110, 13.1).</summary>
internal readonly struct UploadPrecondition
{
    private readonly IList<EntityTagHeaderValue>? _match;
    private readonly IList<EntityTagHeaderValue>? _noneMatch;
    private readonly Func<FileInfo, string> _tagOf;

    /// <exception cref="BadHttpRequestException">A header is malformed (400).</exception>
    internal UploadPrecondition(SaveBodyOptions options)
    {
        _match = Parse(options.IfMatch, HeaderNames.IfMatch);
        _noneMatch = Parse(options.IfNoneMatch, HeaderNames.IfNoneMatch);
        _tagOf = options.EntityTag ?? (static file => TagOf(FileTimes.WrittenOf(file), file.Length));
    }

    /// <summary>
    /// Whether no file of that name may exist (If-None-Match: *). The system decides that when the new file gets the name.
    /// </summary>
    internal bool RequiresNoFile => _noneMatch?.Contains(EntityTagHeaderValue.Any) == true;

    internal static BadHttpRequestException Failed(Exception? cause = null)
        => new("The file is not the one that the precondition asks for.", StatusCodes.Status412PreconditionFailed, cause!);

    /// <summary>The entity tag that the static files middleware gives a file.</summary>
    internal static string TagOf(DateTime written, long length)
        => $"\"{Convert.ToString(ToSecond(written).ToFileTimeUtc() ^ length, 16)}\"";

    internal static DateTime ToSecond(DateTime time) => new(time.Ticks - (time.Ticks % TimeSpan.TicksPerSecond), DateTimeKind.Utc);

    /// <summary>Checks the preconditions on the file that has the name now.</summary>
    /// <exception cref="BadHttpRequestException">A precondition is not met (412).</exception>
    internal void Check(FileInfo file)
    {
        if (_match is null && _noneMatch is null)
        {
            return;
        }

        EntityTagHeaderValue? tag = file.Exists ? EntityTagHeaderValue.Parse(_tagOf(file)) : null;
        if ((_match is not null && !IsIn(_match, tag, isStrong: true))
            || (_noneMatch is not null && IsIn(_noneMatch, tag, isStrong: false)))
        {
            throw Failed();
        }
    }

    private static IList<EntityTagHeaderValue>? Parse(string? value, string name)
        => value is null ? null
            : EntityTagHeaderValue.TryParseList([value], out IList<EntityTagHeaderValue>? tags) && tags.Count > 0 ? tags
            : throw new BadHttpRequestException($"The header {name} is malformed.", StatusCodes.Status400BadRequest);

    private static bool IsIn(IList<EntityTagHeaderValue> tags, EntityTagHeaderValue? tag, bool isStrong)
        => tag is not null && tags.Any(one => one.Equals(EntityTagHeaderValue.Any) || one.Compare(tag, isStrong));
}
