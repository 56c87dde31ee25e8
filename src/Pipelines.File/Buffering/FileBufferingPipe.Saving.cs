using Pipelines.File.Buffering;
using Pipelines.File.IO;
using Pipelines.File.Replace;
using Pipelines.File.Threading;

namespace Pipelines.File;

/// <content>Makes a file of the pipe.</content>
public sealed partial class FileBufferingPipe
{
    private bool _isNamed;

    /// <summary>
    /// Makes a file of everything that was written, which appears under its name whole, as with
    /// <see cref="FilePipeWriterOptions.Replace"/>. On Linux, if the pipe's own file is on the same file system, that file gets the name
    /// and nothing is copied. The pipe can be read on.
    /// </summary>
    /// <param name="path">The path of the file. Its folder exists.</param>
    /// <param name="options">
    /// How to write: <see cref="FilePipeWriterOptions.Mode"/> (<see cref="FileMode.Create"/> or <see cref="FileMode.CreateNew"/>),
    /// <see cref="FilePipeWriterOptions.FlushGuarantee"/>, <see cref="FilePipeWriterOptions.UnixCreateMode"/>,
    /// <see cref="FilePipeWriterOptions.ReplacesLinks"/>, and for a copy <see cref="FilePipeWriterOptions.FileOptions"/> and
    /// <see cref="FilePipeWriterOptions.Caching"/>; others have no effect. <see langword="null"/> means the defaults.
    /// </param>
    /// <param name="cancellationToken">Ends a copy; a file that got its name stays.</param>
    /// <exception cref="InvalidOperationException">
    /// The writer is not completed, or <see cref="FileBufferingPipeOptions.Keep"/> is not set.
    /// </exception>
    /// <exception cref="FileExistsException">A file of that name exists and is not to be replaced.</exception>
    /// <exception cref="IOException">Saving, or writing to the pipe before, has failed.</exception>
    /// <exception cref="ObjectDisposedException">The pipe is disposed.</exception>
    public async ValueTask SaveAsync(string path, FilePipeWriterOptions? options = null, CancellationToken cancellationToken = default)
    {
        ArgumentException.ThrowIfNullOrEmpty(path);
        options ??= FilePipeWriterOptions.Default;
        FilePipeWriterOptions replaces = new()
        {
            Replace = true,
            Mode = options.Mode,
            FlushGuarantee = options.FlushGuarantee,
            UnixCreateMode = options.UnixCreateMode,
            ReplacesLinks = options.ReplacesLinks,
            FileOptions = options.FileOptions,
            Caching = options.Caching,
        };
        replaces.ValidateForPath();
        bool isToName;
        lock (_gate)
        {
            ThrowIfNotWholeLocked();
            if (!_isWriterCompleted)
            {
                throw new InvalidOperationException("The pipe can be saved when its writer is completed.");
            }

            // A second name would be one of the same file.
            isToName = _file.CanBeNamed && !_isNamed;
            _isNamed |= isToName;
        }

        if (isToName)
        {
            await _ending.ConfigureAwait(false);
            lock (_gate)
            {
                // The last write may have failed.
                ThrowIfNotWholeLocked();
            }

            await CompleteFileAsync().ConfigureAwait(false);
            SafeFileHandle handle = _file.Opened.Handle;
            if (await WaitingThreads.Syncs.RunAsync(() => ReplacementFile.TryName(handle, path, replaces, _calls))
                .ConfigureAwait(false))
            {
                return;
            }
        }

        FilePipeWriter writer = await FilePipeWriter.OpenAsync(path, replaces, cancellationToken).ConfigureAwait(false);
        await using ConfiguredAsyncDisposable disposed = writer.ConfigureAwait(false);
        PipeReader reader = OpenReader();
        try
        {
            await reader.CopyToAsync(writer, cancellationToken).ConfigureAwait(false);
        }
        finally
        {
            await reader.CompleteAsync().ConfigureAwait(false);
        }

        await writer.CompleteAsync().ConfigureAwait(false);
    }

    private void ThrowIfNotWholeLocked()
    {
        ThrowIfNotKeptLocked();
        if (_error is { } error)
        {
            ExceptionDispatchInfo.Throw(error);
        }
    }

    /// <summary>Writes to the file what is in memory only. If that fails, the pipe has all bytes as before.</summary>
    private async ValueTask CompleteFileAsync()
    {
        FilePipeWriter writer = FilePipeWriter.Create(
            new SpillFile(_file.Opened, pipe: null), new FilePipeWriterOptions(), leaveOpen: true, isOpenedByPath: true);
        await using ConfiguredAsyncDisposable disposed = writer.ConfigureAwait(false);
        Stream bytes = AsStream();
        while (bytes.Position < _memoryEnd)
        {
            Memory<byte> room = writer.GetMemory();
            int length = (int)Math.Min(room.Length, _memoryEnd - bytes.Position);
            writer.Advance(await bytes.ReadAsync(room[..length]).ConfigureAwait(false));
        }

        await writer.CompleteAsync().ConfigureAwait(false);
    }
}
