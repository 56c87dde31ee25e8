using Microsoft.Win32.SafeHandles;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// How a whole upload takes its name: in its turn among the uploads of this process, after the last check of the preconditions, and in a
/// later second than the file that it replaces.
/// </summary>
/// <param name="path">The name.</param>
/// <param name="options">Validated options.</param>
/// <param name="precondition">That of the options.</param>
/// <param name="handle">The upload, which has no name yet.</param>
internal sealed class UploadName(string path, SaveBodyOptions options, UploadPrecondition precondition, SafeFileHandle handle)
{
    /// <summary>Whether a file of that name is replaced; otherwise it is an error.</summary>
    internal static bool Replaces(SaveBodyOptions options, UploadPrecondition precondition)
        => options.Overwrite && !precondition.RequiresNoFile;

    /// <summary>Waits for the turn, checks, and gives the upload the name.</summary>
    /// <param name="length">The length of the upload, bytes.</param>
    /// <param name="hash">Its hash, or <see langword="null"/>.</param>
    /// <param name="stage">Is told what happens.</param>
    /// <param name="appearAsync">
    /// Gives the upload the name. Its argument is the file that has the name, or none if that is not replaced.
    /// </param>
    /// <param name="cancellationToken">Cancels the waiting.</param>
    internal async Task<SavedFile> TakeAsync(
        long length, ReadOnlyMemory<byte> hash, Action<UploadStage> stage, Func<FileInfo?, ValueTask> appearAsync,
        CancellationToken cancellationToken)
    {
        using NameLock turn = await NameLock.TakeAsync(path, options.MaxWaiting, cancellationToken).ConfigureAwait(false);
        FileInfo old = await TakeTimeAsync(cancellationToken).ConfigureAwait(false);
        bool replaces = old.Exists && Replaces(options, precondition);
        if (replaces && options.BeforeReplaceAsync is { } beforeReplace)
        {
            stage(UploadStage.Replacing);
            await beforeReplace(old, cancellationToken).ConfigureAwait(false);
            stage(UploadStage.Writing);
        }

        string? tag = options.EntityTag is null ? UploadPrecondition.TagOf(TimeOf(), length) : null;
        try
        {
            await appearAsync(replaces ? old : null).ConfigureAwait(false);
        }
        catch (FileExistsException e) when (precondition.RequiresNoFile)
        {
            throw UploadPrecondition.Failed(e);
        }

        return new SavedFile(length, hash, tag ?? TagByOptions(), replaces);
    }

    private DateTime TimeOf()
    {
        try
        {
            return FileTimes.WrittenOf(handle);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw Named(e);
        }
    }

    private void SetTime(DateTime time)
    {
        try
        {
            System.IO.File.SetLastWriteTimeUtc(handle, time);
            if (options.Durable)
            {
                // The sync of the bytes was before this.
                FileSync.Flush(handle);
            }
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw Named(e);
        }
    }

    // The runtime knows no path of a handle.
    private IOException Named(Exception e) => new($"{e.Message} : '{path}'", e);

    /// <summary>
    /// Checks the preconditions, and makes the second of the new file later than that of the file that it replaces, and not later than the
    /// clock's: waits for the next second if it has to. So no two versions of a file have the same entity tag or Last-Modified. Called in
    /// the turn of the name. Returns the file that has the name.
    /// </summary>
    private async Task<FileInfo> TakeTimeAsync(CancellationToken cancellationToken)
    {
        DateTime written = UploadPrecondition.ToSecond(TimeOf());
        while (true)
        {
            FileInfo old = new(path);
            precondition.Check(old);
            if (!old.Exists || !Replaces(options, precondition))
            {
                return old;
            }

            if (!options.DistinctVersions)
            {
                TakeLaterTime(FileTimes.WrittenOf(old));
                return old;
            }

            DateTime replaced = UploadPrecondition.ToSecond(FileTimes.WrittenOf(old));
            DateTime now = DateTime.UtcNow;
            if (replaced < written)
            {
                return old;
            }

            // A file whose time is ahead of the clock gives way to the clock.
            if (replaced != UploadPrecondition.ToSecond(now))
            {
                SetTime(now);

                return old;
            }

            await Task.Delay(replaced.AddSeconds(1) - now, cancellationToken).ConfigureAwait(false);
        }
    }

    // Later by one step, but a file whose time is ahead of the clock gives way to the clock.
    private void TakeLaterTime(DateTime replaced)
    {
        DateTime now = DateTime.UtcNow;
        if (TimeOf() <= replaced)
        {
            SetTime(replaced > now.AddMinutes(1) ? now : replaced.AddTicks(1));
        }
    }

    private string? TagByOptions()
    {
        try
        {
            return options.EntityTag!(new FileInfo(path));
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // Another program has taken the file away, and the upload was saved all the same.
            return null;
        }
    }
}
