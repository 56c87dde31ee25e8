using System.Buffers;
using System.IO.Pipelines;
using System.Security.Cryptography;
using System.Text.Json;
using Microsoft.AspNetCore.Http;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File.AspNetCore;

/// <summary>A resumable upload that one request has for itself, until it is disposed of.</summary>
internal sealed class StoredUpload : IDisposable
{
    // What a killed process loses of an upload is what came in this time; a client sends it again.
    private static readonly TimeSpan s_recordInterval = TimeSpan.FromSeconds(1);

    private readonly UploadStore _store;
    private readonly SafeFileHandle? _handle;
    private readonly FileLock _turn;
    private readonly TaskCompletionSource _ended = new(TaskCreationOptions.RunContinuationsAsynchronously);

    // Where the bytes are now, and how many of them the store has counted.
    private string _path;
    private long _counted;
    private SavedFile? _saved;

    // The end of the reading of a body, under way only; and what has ended it, Interlocked: a StatusCode, or 0.
    private volatile CancellationTokenSource? _reading;
    private int _endedWith;

    /// <param name="store">The store.</param>
    /// <param name="id">The identifier.</param>
    /// <param name="state">The state, read while the lock was held.</param>
    /// <param name="path">Where the bytes are.</param>
    /// <param name="bytes">Their file; <see langword="null"/> if they are not used.</param>
    /// <param name="turn">The lock, which ends with this.</param>
    internal StoredUpload(UploadStore store, string id, UploadState state, string path, SafeFileHandle? bytes, FileLock turn)
    {
        _store = store;
        _handle = bytes;
        _turn = turn;
        _path = path;
        _counted = UploadStore.CountOf(state);
        Id = id;
        IsSaved = state.SavingTo is { } name && (path == name || UploadStore.IsAt(name, state));

        // A power failure may have taken bytes that were not synced. More bytes than the state tells are of a request that was cut off.
        State = bytes is null ? state : state with { Offset = Math.Min(state.Offset, RandomAccess.GetLength(bytes)) };
        store.Hold(this, _counted);
    }

    internal string Id { get; }

    internal UploadState State { get; private set; }

    /// <summary>What the upload is doing.</summary>
    internal UploadStage Stage { get => _stage; private set => _stage = value; }

    /// <summary>Whether its bytes, or a copy of them, have their name already, and only the end of the work is missing.</summary>
    internal bool IsSaved { get; private set; }

    /// <summary>Whether nothing of it is kept, so that no request goes on with it.</summary>
    internal bool IsRemoved { get; private set; }

    private volatile UploadStage _stage = UploadStage.Checking;

    private SafeFileHandle Handle => _handle!;

    private FlushGuarantee Guarantee => _store.Options.Durable ? FlushGuarantee.Durable : FlushGuarantee.Written;

    /// <summary>Ends the lock.</summary>
    public void Dispose()
    {
        _handle?.Dispose();
        _store.Release(this, IsRemoved || !UploadStore.Takes(State) ? null : UploadStore.CountOf(State));
        _counted = 0;
        if (IsRemoved || State is { IsFinished: true, IsPartial: false })
        {
            // It takes nothing any more, and nobody changes it but to remove it, so two may hold its lock from here on: one of them a lock
            // that was removed while it waited.
            TryDelete(_store.LockPathOf(Id));
        }

        _turn.Dispose();
        if (OperatingSystem.IsWindows() && (IsRemoved || State is { IsFinished: true, IsPartial: false }))
        {
            // There the lock is not removed as long as somebody holds it.
            TryDelete(_store.LockPathOf(Id));
        }

        State = new UploadState { IsFinished = true };
        _ended.TrySetResult();
    }

    /// <summary>
    /// Ends the reading of the body, of which the rest may never come; what has come is written first. Returns what ends when the upload is
    /// given up; <see langword="null"/> if no body is read.
    /// </summary>
    internal Task? TryEnd()
        => _reading is { } reading && EndReading(reading, StatusCodes.Status423Locked) ? _ended.Task : null;

    private bool EndReading(CancellationTokenSource reading, int status)
    {
        if (Interlocked.CompareExchange(ref _endedWith, status, 0) != 0)
        {
            return true;
        }

        try
        {
            reading.Cancel();
            return true;
        }
        catch (ObjectDisposedException)
        {
            // The body has come to its end.
            return false;
        }
    }

    /// <summary>Sets the length that the client has not told before, and remembers it.</summary>
    /// <exception cref="BadHttpRequestException">It is too long (413), or there is no room (507).</exception>
    internal async Task SetLengthAsync(long length)
    {
        if (length < State.Offset || length > (_store.Options.MaxLength ?? long.MaxValue))
        {
            throw UploadedFile.TooLong(length < State.Offset ? length : _store.Options.MaxLength!.Value);
        }

        long offset = State.Offset;
        Count(length - offset);
        await SaveStateAsync(State with { Length = length }).ConfigureAwait(false);
        State = State with { Offset = offset };
    }

    /// <summary>
    /// Appends a body. However that ends, the state tells afterwards which of its bytes are kept: all that came, or none if the body has a
    /// checksum and is not right.
    /// </summary>
    /// <param name="body">The body.</param>
    /// <param name="isChecked">Whether nothing is kept before the whole body is there and was checked.</param>
    /// <param name="check">
    /// Called with the number of bytes when the whole body has come; returns their checksum, or <see langword="null"/>. If it throws, none
    /// of them is kept.
    /// </param>
    /// <param name="cancellationToken">Ends the reading.</param>
    internal async Task AppendAsync(
        PipeReader body, bool isChecked, Func<long, UploadChecksum?> check, CancellationToken cancellationToken)
    {
        long begin = State.Offset;
        if (RandomAccess.GetLength(Handle) > begin && !IsSaved)
        {
            RandomAccess.SetLength(Handle, begin);
        }

        FilePipeWriter? writer = IsSaved ? null
            : FilePipeWriter.Create(Handle, new FilePipeWriterOptions { LeaveOpen = true, Offset = begin });
        long end = begin;
        using CancellationTokenSource reading = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        TimeSpan idleTimeout = _store.Options.IdleTimeout;
        using ITimer timer = _store.Time.CreateTimer(
            _ => EndReading(reading, StatusCodes.Status408RequestTimeout), null, Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
        _reading = reading;
        try
        {
            for (long recorded = _store.Time.GetTimestamp(); ;)
            {
                Stage = UploadStage.Reading;
                ValueTask<ReadResult> next = body.ReadAsync(reading.Token);
                bool waits = !next.IsCompleted;
                if (waits)
                {
                    timer.Change(idleTimeout, Timeout.InfiniteTimeSpan);
                }

                ReadResult read = await next.ConfigureAwait(false);
                Stage = UploadStage.Writing;
                if (waits)
                {
                    timer.Change(Timeout.InfiniteTimeSpan, Timeout.InfiniteTimeSpan);
                }

                try
                {
                    Take(read.Buffer, end, writer);
                    end += read.Buffer.Length;
                }
                finally
                {
                    body.AdvanceTo(read.Buffer.End);
                }

                if (read.IsCanceled)
                {
                    throw new OperationCanceledException("The reading of the body was canceled.", cancellationToken);
                }

                if (writer is not null)
                {
                    await writer.FlushAsync(cancellationToken).ConfigureAwait(false);
                }

                if (read.IsCompleted)
                {
                    break;
                }

                if (!isChecked && writer is not null && _store.Time.GetElapsedTime(recorded) >= s_recordInterval)
                {
                    await RecordAsync(writer, end).ConfigureAwait(false);
                    recorded = _store.Time.GetTimestamp();
                }
            }

            if (writer is not null)
            {
                await writer.FlushAsync(Guarantee, CancellationToken.None).ConfigureAwait(false);
            }

            // What is wrong with the body from here on is wrong with all of it.
            isChecked = true;
            if (check(end - begin) is { } expected && !(await HashAsync(expected.Algorithm, begin, end - begin).ConfigureAwait(false))
                .AsSpan().SequenceEqual(expected.Hash))
            {
                throw new BadHttpRequestException("The checksum of the body is another one.", statusCode: 460);
            }

            // What is whole is finished next, which saves the state.
            if (end != State.Length)
            {
                await SaveStateAsync(State with { Offset = end }).ConfigureAwait(false);
            }

            State = State with { Offset = end };

            if (writer is not null)
            {
                await writer.CompleteAsync().ConfigureAwait(false);
            }
        }
        catch (Exception e)
        {
            await EndBrokenAsync(writer, isChecked ? begin : end).ConfigureAwait(false);
            if (e is OperationCanceledException && !cancellationToken.IsCancellationRequested && _endedWith is var status and not 0)
            {
                throw new BadHttpRequestException(
                    status == StatusCodes.Status408RequestTimeout
                        ? "No more bytes have come for too long." : "Another request goes on with the upload.",
                    status,
                    e);
            }

            throw;
        }
        finally
        {
            _reading = null;
        }
    }

    /// <summary>The hash of a part of the bytes.</summary>
    internal async Task<byte[]> HashAsync(HashAlgorithmName algorithm, long offset, long length)
    {
        using IncrementalHash hash = IncrementalHash.CreateHash(algorithm);
        FilePipeReader reader = FilePipeReader.Create(
            Handle, new FilePipeReaderOptions { LeaveOpen = true, Offset = offset, Length = length });
        await using (reader.ConfigureAwait(false))
        {
            ReadResult read;
            do
            {
                read = await reader.ReadAsync().ConfigureAwait(false);
                foreach (ReadOnlyMemory<byte> segment in read.Buffer)
                {
                    hash.AppendData(segment.Span);
                }

                reader.AdvanceTo(read.Buffer.End);
            }
            while (!read.IsCompleted);
        }

        return hash.GetHashAndReset();
    }

    /// <summary>
    /// Has the whole upload inspected and saved, and remembers that. Until then the state says that its last byte is missing, so whatever
    /// interrupts this, the client goes on, and it is done again.
    /// </summary>
    internal async Task FinishAsync(HttpContext context, UploadRequest request, CancellationToken cancellationToken)
    {
        ResumableUploadOptions options = _store.Options;
        if (!State.IsPartial)
        {
            try
            {
                byte[]? hash = options.Hash is { } algorithm
                    ? await HashAsync(algorithm, 0, State.Length!.Value).ConfigureAwait(false) : null;
                if (options.InspectAsync is { } inspect)
                {
                    await UploadInspection.RunAsync(
                        inspect, Handle, State.Length!.Value, hash, request, stage => Stage = stage, cancellationToken)
                        .ConfigureAwait(false);
                }

                Stage = UploadStage.Replacing;
                if (options.OnCompletedAsync is { } complete)
                {
                    FilePipeReader reader = FilePipeReader.Create(Handle, new FilePipeReaderOptions { LeaveOpen = true });
                    await using (reader.ConfigureAwait(false))
                    {
                        await complete(new CompletedUpload(context, this, reader, hash), cancellationToken).ConfigureAwait(false);
                    }
                }
                else
                {
                    await SaveAsync(Path.Combine(_store.Folder, Id), SaveBodyOptions.Default, hash, cancellationToken)
                        .ConfigureAwait(false);
                }

                Stage = UploadStage.Writing;
            }
            catch (Exception e) when (State.Length == 0 || e is BadHttpRequestException { StatusCode: >= 400 and < 500 })
            {
                // It is refused; or it is empty, so that no byte can be missing, and a client would be told that it is finished.
                Remove();
                throw;
            }
            catch
            {
                await SaveStateAsync(State).ConfigureAwait(false);
                throw;
            }
        }

        await SaveStateAsync(State with { Offset = State.Length!.Value, IsFinished = true, SavingTo = null, Identity = null })
            .ConfigureAwait(false);
        if (!State.IsPartial)
        {
            RemoveBytes();
        }

        request.Saved(State.Length!.Value);
    }

    /// <summary>Moves the bytes under a name.</summary>
    internal async Task<SavedFile> SaveAsync(
        string path, SaveBodyOptions options, ReadOnlyMemory<byte> hash, CancellationToken cancellationToken)
    {
        if (_saved is not null)
        {
            throw new InvalidOperationException("The upload was saved already.");
        }

        UploadPrecondition precondition = new(options);
        bool isDurable = options.Durable || _store.Options.Durable;
        if (IsSaved && path == State.SavingTo)
        {
            // The process was killed after the file had its name, and maybe before that was on the device.
            SyncFolder(path, isDurable);
            FileInfo file = new(path);
            string tag = options.EntityTag?.Invoke(file) ?? UploadPrecondition.TagOf(FileTimes.WrittenOf(file), file.Length);
            return _saved = new SavedFile(State.Length!.Value, hash, tag, replaced: false);
        }

        UploadName name = new(path, options, precondition, Handle);
        return _saved = await name.TakeAsync(
            State.Length!.Value,
            hash,
            stage => Stage = stage,
            async old =>
            {
                await MoveAsync(path, old, options, isDurable).ConfigureAwait(false);
                SyncFolder(path, isDurable);
            },
            cancellationToken).ConfigureAwait(false);
    }

    /// <summary>Replaces the state file.</summary>
    internal async Task SaveStateAsync(UploadState state)
    {
        long offset = state is { IsFinished: false, Length: long length } ? Math.Min(state.Offset, Math.Max(0, length - 1)) : state.Offset;
        state = state with { Offset = offset, Expires = _store.Now + _store.Options.Expiration };
        FilePipeWriter writer = SpareDescriptors.Open(_store.StatePathOf(Id), path => FilePipeWriter.Create(
            path, new FilePipeWriterOptions { Replace = true, FlushGuarantee = Guarantee }));
        await using (writer.ConfigureAwait(false))
        {
            writer.Write(JsonSerializer.SerializeToUtf8Bytes(state, UploadStateContext.Default.UploadState));
            await writer.CompleteAsync().ConfigureAwait(false);
        }

        State = state;
    }

    /// <summary>Removes the upload, and what is not saved of its bytes. The state goes first: without it there is no upload.</summary>
    /// <param name="isAsked">Whether the client asks for it. Then a file that the application has not saved elsewhere goes, too.</param>
    internal void Remove(bool isAsked = false)
    {
        System.IO.File.Delete(_store.StatePathOf(Id));
        IsRemoved = true;
        RemoveBytes();
        if (isAsked && _store.Options.OnCompletedAsync is null)
        {
            System.IO.File.Delete(Path.Combine(_store.Folder, Id));
        }
    }

    // All but those that have their name.
    private void RemoveBytes()
    {
        System.IO.File.Delete(_store.PartPathOf(Id));
        if (!IsSaved)
        {
            System.IO.File.Delete(_path);
        }
    }

    // Counts, and gives to the writer, the next bytes.
    private void Take(ReadOnlySequence<byte> bytes, long offset, FilePipeWriter? writer)
    {
        long most = State.Length ?? _store.Options.MaxLength ?? long.MaxValue;
        if (bytes.Length > most - offset)
        {
            throw UploadedFile.TooLong(most);
        }

        if (State.Length is null)
        {
            Count(bytes.Length);
        }

        if (writer is not null)
        {
            foreach (ReadOnlyMemory<byte> segment in bytes)
            {
                writer.Write(segment.Span);
            }
        }
    }

    private void Count(long bytes)
    {
        if (!_store.TryCount(bytes, Id))
        {
            throw _store.TooMuch();
        }

        _counted += bytes;
    }

    // The state, and so a client, is told of bytes only after they are written or synced.
    private async Task RecordAsync(FilePipeWriter writer, long end)
    {
        await writer.FlushAsync(Guarantee, CancellationToken.None).ConfigureAwait(false);
        await SaveStateAsync(State with { Offset = end }).ConfigureAwait(false);
    }

    /// <summary>Keeps what came of a body that broke off.</summary>
    private async Task EndBrokenAsync(FilePipeWriter? writer, long end)
    {
        if (writer is null)
        {
            return;
        }

        try
        {
            await RecordAsync(writer, end).ConfigureAwait(false);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // The body has failed for the same reason, which the client is told, or the state keeps what it told before.
        }
        finally
        {
            writer.Abort();
        }
    }

    private async Task MoveAsync(string path, FileInfo? old, SaveBodyOptions options, bool isDurable)
    {
        if (Directory.Exists(path) || old?.IsReadOnly == true)
        {
            throw new UnauthorizedAccessException($"The file '{path}' is a folder, or may not be written to.");
        }

        if (old is { Length: 0 })
        {
            // Maybe a FIFO or a device, which a rename would replace. Only a writer tells, and then gives up.
            FilePipeWriter.Create(path, new FilePipeWriterOptions { Replace = true, ReplacesLinks = true }).Abort();
        }

        UnixFileMode? mode = old is { LinkTarget: null } && !OperatingSystem.IsWindows() ? old.UnixFileMode : options.UnixCreateMode;
        if (mode is { } permissions && !OperatingSystem.IsWindows())
        {
            System.IO.File.SetUnixFileMode(Handle, permissions);
        }

        if (isDurable)
        {
            // The time and the permissions; the bytes are there.
            FileSync.Flush(Handle);
        }

        string? identity = FileIdentity.TryGet(_path, out FileIdentity it) ? it.ToString() : null;
        await SaveStateAsync(State with { SavingTo = path, Identity = identity }).ConfigureAwait(false);

        // It may have had another name. Who has this one may be somebody else.
        IsSaved = false;
        string between = UploadStore.BetweenPathOf(Id, path);
        if (_path != between)
        {
            try
            {
                // Not File.Move, which copies to another file system, where somebody would see a part of the file.
                Directory.Move(_path, between);
            }
            catch (IOException) when (System.IO.File.Exists(_path))
            {
                await CopyAsync(path, old, options, mode, isDurable).ConfigureAwait(false);
                return;
            }

            _path = between;
        }

        try
        {
            System.IO.File.Move(between, path, overwrite: old is not null);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            MoveBack();
            if (e is IOException && old is null && System.IO.File.Exists(path))
            {
                throw new FileExistsException($"The file '{path}' exists already.", path, e);
            }

            throw;
        }

        _path = path;
        IsSaved = true;
    }

    // The next name may be in another folder, and the state tells of one only.
    private void MoveBack()
    {
        try
        {
            Directory.Move(_path, _store.PartPathOf(Id));
            _path = _store.PartPathOf(Id);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // The bytes stay where they are, which the state tells.
        }
    }

    // To another file system. The bytes stay here until the upload is finished.
    private async Task CopyAsync(string path, FileInfo? old, SaveBodyOptions options, UnixFileMode? mode, bool isDurable)
    {
        FilePipeReader reader = FilePipeReader.Create(Handle, new FilePipeReaderOptions { LeaveOpen = true });
        await using (reader.ConfigureAwait(false))
        {
            FilePipeWriter writer = await FilePipeWriter.OpenAsync(path, new FilePipeWriterOptions
            {
                Replace = true,
                Mode = old is null ? FileMode.CreateNew : FileMode.Create,
                FlushGuarantee = isDurable ? FlushGuarantee.Durable : FlushGuarantee.WriteBehind,
                ReplacesLinks = true,
                UnixCreateMode = mode,
                Caching = options.Caching,
            }).ConfigureAwait(false);
            await using (writer.ConfigureAwait(false))
            {
                await reader.CopyToAsync(writer).ConfigureAwait(false);
                await writer.FlushAsync(FlushGuarantee.Written).ConfigureAwait(false);

                // From here on the copy is what the state tells of: a process that is killed behind the next step finds it.
                FilePipeReader copy = FilePipeReader.Create(writer.Handle, new FilePipeReaderOptions { LeaveOpen = true });
                await using (copy.ConfigureAwait(false))
                {
                    await SaveStateAsync(State with { Identity = copy.Identity.ToString() }).ConfigureAwait(false);
                }

                System.IO.File.SetLastWriteTimeUtc(writer.Handle, FileTimes.WrittenOf(Handle));
                if (isDurable)
                {
                    FileSync.Flush(writer.Handle);
                }

                await writer.CompleteAsync().ConfigureAwait(false);
                IsSaved = true;
            }
        }
    }

    private static void SyncFolder(string path, bool isDurable)
    {
        if (isDurable)
        {
            FileSync.FlushFolder(Path.GetDirectoryName(path)!);
        }
    }

    internal static void TryDelete(string path)
    {
        try
        {
            System.IO.File.Delete(path);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            // The next look removes it.
        }
    }
}
