using Microsoft.AspNetCore.Http;
using Microsoft.Net.Http.Headers;
using Microsoft.Win32.SafeHandles;

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
        _tagOf = options.EntityTag ?? TagOf;
    }

    /// <summary>Whether there is a precondition.</summary>
    internal bool IsAny => _match is not null || _noneMatch is not null;

    /// <summary>
    /// Whether no file of that name may exist (If-None-Match: *). The system decides that when the new file gets the name.
    /// </summary>
    internal bool RequiresNoFile => _noneMatch?.Contains(EntityTagHeaderValue.Any) == true;

    internal static BadHttpRequestException Failed(Exception? cause = null)
        => new("The file is not the one that the precondition asks for.", StatusCodes.Status412PreconditionFailed, cause!);

    /// <summary>Checks the preconditions before the body is read.</summary>
    /// <exception cref="BadHttpRequestException">A precondition is not met (412).</exception>
    internal void Check(string path)
    {
        if (IsAny)
        {
            Check(new FileInfo(path));
        }
    }

    /// <summary>
    /// Checks the preconditions again, right before the new file gets the name. If the new file has the length of the old one and not a
    /// later second, its time is set to the next second. So its entity tag differs, and of two uploads that name the same tag the second is
    /// refused.
    /// </summary>
    internal void CheckAndAdjustTime(string path, SafeFileHandle file, long length)
    {
        if (!IsAny)
        {
            return;
        }

        FileInfo old = new(path);
        Check(old);
        if (old.Exists && old.Length == length && ToSecond(System.IO.File.GetLastWriteTimeUtc(file)) is var written
            && written <= ToSecond(old.LastWriteTimeUtc))
        {
            System.IO.File.SetLastWriteTimeUtc(file, ToSecond(old.LastWriteTimeUtc).AddSeconds(1));
        }
    }

    /// <summary>The entity tag that the static files middleware gives a file.</summary>
    private static string TagOf(FileInfo file)
        => $"\"{Convert.ToString(ToSecond(file.LastWriteTimeUtc).ToFileTimeUtc() ^ file.Length, 16)}\"";

    private static DateTime ToSecond(DateTime time) => new(time.Ticks - (time.Ticks % TimeSpan.TicksPerSecond), DateTimeKind.Utc);

    private static IList<EntityTagHeaderValue>? Parse(string? value, string name)
        => string.IsNullOrEmpty(value) ? null
            : EntityTagHeaderValue.TryParseList([value], out IList<EntityTagHeaderValue>? tags) ? tags
            : throw new BadHttpRequestException($"The header {name} is malformed.", StatusCodes.Status400BadRequest);

    private void Check(FileInfo file)
    {
        EntityTagHeaderValue? tag = file.Exists ? EntityTagHeaderValue.Parse(_tagOf(file)) : null;
        if ((_match is not null && !IsIn(_match, tag, isStrong: true))
            || (_noneMatch is not null && IsIn(_noneMatch, tag, isStrong: false)))
        {
            throw Failed();
        }
    }

    private static bool IsIn(IList<EntityTagHeaderValue> tags, EntityTagHeaderValue? tag, bool isStrong)
        => tag is not null && tags.Any(one => one.Equals(EntityTagHeaderValue.Any) || one.Compare(tag, isStrong));
}
