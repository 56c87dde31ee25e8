using Pipelines.File;
using Pipelines.File.AspNetCore;
using BadHttpRequestException = Microsoft.AspNetCore.Http.BadHttpRequestException;

namespace FileServerSample;

/// <summary>
/// Uploads at /uploads that go on where they broke off (tus 1.0). Their metadata have the path of the file, as a PUT would name it:
/// <c>target /files/folder/name</c>; other clients than the page send a <c>filename</c>, which goes to the root.
/// </summary>
internal static partial class FolderUploads
{
    // Begins with a dot, so nobody is served from it.
    private const string Unfinished = ".uploads";

    internal static void Map(WebApplication app, ServedFolder served, Settings settings)
    {
        ResumableUploadOptions options = new()
        {
            Folder = Path.Combine(settings.Root, Unfinished),
            MaxLength = settings.MaxUpload,

            // Whoever is here may make ten of the longest ones, and a hundred in all.
            MaxTotalLength = settings.MaxUpload < long.MaxValue / 10 ? settings.MaxUpload * 10 : long.MaxValue,
            MaxUploads = 100,
            AllowMethodOverride = false,
            Durable = settings.Durable,
            OnRequestAsync = (upload, stop) =>
            {
                // What would be refused in the end is refused before it is sent. Parts have no name.
                if (upload.Operation is ResumableUploadOperation.Create or ResumableUploadOperation.Concatenate && !upload.IsPartial)
                {
                    _ = TargetOf(upload, served, settings);
                }

                return ValueTask.CompletedTask;
            },
            OnCompletedAsync = async (upload, stop) =>
            {
                SaveBodyOptions saving = new()
                {
                    Overwrite = settings.Overwrite,
                    EntityTag = FileServerApplication.TagOf,
                    DistinctVersions = false,
                    Caching = settings.DropBehind ? FileCaching.DropBehind : FileCaching.Keep,
                };
                try
                {
                    await upload.SaveAsync(TargetOf(upload, served, settings, isComplete: true), saving, stop);
                }
                catch (FileExistsException e)
                {
                    throw Exists(e);
                }
            },
        };
        try
        {
            app.MapResumableUploads("/uploads", options);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // A root that cannot be written to is served all the same.
            LogNoUploads(app.Logger, e.Message);
        }
    }

    [LoggerMessage(2, LogLevel.Warning, "There are no uploads that go on where they broke off: {Reason}")]
    private static partial void LogNoUploads(ILogger logger, string reason);

    /// <param name="upload">The upload.</param>
    /// <param name="served">Where its name becomes a path.</param>
    /// <param name="settings">Whether a file may be replaced.</param>
    /// <param name="isComplete">Whether it may have its name already: the server was killed before it could tell.</param>
    private static string TargetOf(ResumableUpload upload, ServedFolder served, Settings settings, bool isComplete = false)
    {
        string target = upload.Metadata.GetValueOrDefault("target")
            ?? "/files/" + Uri.EscapeDataString(upload.Metadata.GetValueOrDefault("filename", ""));
        if (ServedFolder.NamesOf(target) is not { } names || names is [.., ""] || served.PathOf(names) is not { } path
            || !Directory.Exists(Path.GetDirectoryName(path)))
        {
            throw new BadHttpRequestException("There is no such folder, or the name is not taken.", StatusCodes.Status404NotFound);
        }

        return !Directory.Exists(path) && (settings.Overwrite || isComplete || !File.Exists(path)) ? path : throw Exists(null);
    }

    private static BadHttpRequestException Exists(Exception? cause)
        => new("There is something of that name already.", StatusCodes.Status422UnprocessableEntity, cause!);
}
