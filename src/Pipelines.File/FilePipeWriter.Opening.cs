using Microsoft.Win32.SafeHandles;
using Pipelines.File.IO;
using Pipelines.File.Writing;

namespace Pipelines.File;

/// <content>How a writer comes to its file.</content>
public sealed partial class FilePipeWriter
{
    /// <summary>Opens or makes a file and puts a writer on it, which closes it when it is completed.</summary>
    /// <param name="path">The file: absolute, or relative to the current directory. FIFOs and devices work.</param>
    /// <param name="options">How to write; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentException">
    /// <paramref name="path"/> is empty or <see langword="null"/>, <see cref="FilePipeWriterOptions.PreallocationSize"/> goes with a mode that makes no file, or <see cref="FilePipeWriterOptions.Offset"/> with
    /// one that empties it or appends.
    /// </exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="FileNotFoundException">There is no such file, and the mode makes none.</exception>
    /// <exception cref="DirectoryNotFoundException">There is no such folder on the way to it.</exception>
    /// <exception cref="UnauthorizedAccessException">The caller may not write it, or it is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeWriterOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    /// <exception cref="FileExistsException">With <see cref="FileMode.CreateNew"/>: there is a file of that name.</exception>
    /// <exception cref="IOException">Opening it failed otherwise: it exists already, another process has it open, the disk has no room to preallocate.</exception>
    public static FilePipeWriter Create(string path, FilePipeWriterOptions? options = null)
        => new(WriterFile.Open(path, options ??= FilePipeWriterOptions.Default), options);

    /// <summary>
    /// As <see cref="Create(string, FilePipeWriterOptions?)"/>, without holding up the caller: the file is opened by a thread of the library's own. A FIFO waits for its other side without
    /// a thread.
    /// </summary>
    /// <param name="path">The file: absolute, or relative to the current directory of this moment.</param>
    /// <param name="options">How to write; <see langword="null"/> for the defaults.</param>
    /// <param name="cancellationToken">Ends the wait at once; a file that is opened all the same is closed again.</param>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <inheritdoc cref="Create(string, FilePipeWriterOptions?)" path="/exception"/>
    public static ValueTask<FilePipeWriter> OpenAsync(string path, FilePipeWriterOptions? options = null, CancellationToken cancellationToken = default)
    {
        options ??= FilePipeWriterOptions.Default;
        options.ValidateForPath();
        ArgumentException.ThrowIfNullOrEmpty(path);
        FileOpening.ThrowIfNotSupported(options.Backend);
        string fullPath = Path.GetFullPath(path);
        FifoOpening? fifo = options.Replace || options.Mode == FileMode.CreateNew ? null : FifoOpening.TryFor(fullPath, FileAccess.Write, options.Share, options.FileOptions);
        return PendingOpen<FilePipeWriter>.StartAsync(
            fullPath,
            fifo,
            handle => handle is null ? Create(fullPath, options) : Create(FileOpening.OpenFifo(options.Backend, handle, fullPath), options, leaveOpen: false, isOpenedByPath: true),
            static opened => opened.Abort(),
            cancellationToken);
    }

    /// <summary>
    /// Puts a writer on an open file, which it closes when it is completed unless <see cref="FilePipeWriterOptions.LeaveOpen"/> says otherwise. Where this throws,
    /// the file stays open.
    /// </summary>
    /// <param name="handle">The file, open for writing. A file that can seek is written from <see cref="FilePipeWriterOptions.Offset"/>, wherever its own position is.</param>
    /// <param name="options">How to write; <see langword="null"/> for the defaults.</param>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException">
    /// <paramref name="handle"/> is invalid, an option is set that is for paths, or <see cref="FilePipeWriterOptions.Offset"/> with a handle that appends.
    /// </exception>
    /// <exception cref="ObjectDisposedException"><paramref name="handle"/> is closed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="UnauthorizedAccessException">It is a directory.</exception>
    /// <exception cref="NotSupportedException"><see cref="FilePipeWriterOptions.Offset"/> is not 0 and the file cannot seek.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    public static FilePipeWriter Create(SafeFileHandle handle, FilePipeWriterOptions? options = null)
        => new(WriterFile.Attach(handle, options ??= FilePipeWriterOptions.Default), options);

    /// <summary>
    /// Puts a writer on the standard output of this process, which may be a file, a pipe, a terminal or a socket. It writes where the shell has left off, or appends where the shell
    /// appends (<c>&gt;&gt;</c>), so that <c>(echo header; program) &gt; file</c> keeps both; it never closes it.
    /// </summary>
    /// <remarks>Not the same as <c>FilePipeWriter.Create("/dev/stdout")</c>, which opens the file behind it anew, and empties it. <see cref="Console"/> has no part in it: flush what you have written there first.</remarks>
    /// <param name="options">How to write; <see langword="null"/> for the defaults. What is for a path, and <see cref="FilePipeWriterOptions.Offset"/>, cannot be set.</param>
    /// <exception cref="ArgumentException">An option is set that the shell has decided.</exception>
    /// <exception cref="ArgumentOutOfRangeException">An option is out of its range.</exception>
    /// <exception cref="PlatformNotSupportedException">This system lacks the back end that was asked for.</exception>
    /// <exception cref="IOException">There is no standard output.</exception>
    public static FilePipeWriter OpenStandardOutput(FilePipeWriterOptions? options = null)
        => new(WriterFile.OpenStandardOutput(options ??= FilePipeWriterOptions.Default), options);

    /// <summary>With <see cref="FilePipeWriterOptions.Replace"/>, and other calls than the system's: for tests.</summary>
    internal static FilePipeWriter Create(string path, FilePipeWriterOptions options, object calls) => new(WriterFile.Open(path, options, calls), options);

    internal static FilePipeWriter Create(OpenedFile backend, FilePipeWriterOptions options, bool leaveOpen, bool isOpenedByPath)
        => new(WriterFile.Of(backend, options, leaveOpen, isOpenedByPath), options);
}
