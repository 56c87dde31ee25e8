using Pipelines.File.IO;
using Pipelines.File.Writing;

namespace Pipelines.File;

/// <content>Opens writers: by path, by handle, and for standard output.</content>
public sealed partial class FilePipeWriter
{
    /// <summary>Opens or creates a file and returns a writer for it. The writer closes the file when it is completed.</summary>
    /// <param name="path">The path of the file, absolute or relative to the current directory. FIFOs and devices work, too.</param>
    /// <param name="options">How to write; <see langword="null"/> means the defaults.</param>
    /// <exception cref="ArgumentException">
    /// <paramref name="path"/> is empty or <see langword="null"/>, or two options contradict each other.
    /// </exception>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <see cref="FilePipeWriterOptions.ResumeWriterThreshold"/> exceeds <see cref="FilePipeWriterOptions.PauseWriterThreshold"/>.
    /// </exception>
    /// <exception cref="FileNotFoundException">
    /// The file does not exist, and <see cref="FilePipeWriterOptions.Mode"/> does not create it.
    /// </exception>
    /// <exception cref="DirectoryNotFoundException">A folder of the path does not exist.</exception>
    /// <exception cref="UnauthorizedAccessException">You may not write the file, or the path is that of a folder.</exception>
    /// <exception cref="NotSupportedException">
    /// <see cref="FilePipeWriterOptions.Offset"/> is not 0 and the file cannot seek.
    /// </exception>
    /// <exception cref="PlatformNotSupportedException">
    /// This system does not have the <see cref="FilePipeWriterOptions.Backend"/> that the options name.
    /// </exception>
    /// <exception cref="FileExistsException">The mode is <see cref="FileMode.CreateNew"/>, and a file of that name exists.</exception>
    /// <exception cref="IOException">
    /// The file cannot be opened for another reason: another process has opened it, or the disk has no room to preallocate.
    /// </exception>
    public static FilePipeWriter Create(string path, FilePipeWriterOptions? options = null)
        => new(WriterFile.Open(path, options ??= FilePipeWriterOptions.Default), options);

    /// <summary>
    /// Opens or creates a file without blocking the caller, and returns a writer for it. A thread of the library opens the file; a FIFO
    /// waits for its other side without a thread.
    /// </summary>
    /// <param name="path">The path of the file, absolute or relative to the current directory at the time of the call.</param>
    /// <param name="options">How to write; <see langword="null"/> means the defaults.</param>
    /// <param name="cancellationToken">Ends the wait at once. If the system opens the file after that, it is closed again.</param>
    /// <exception cref="OperationCanceledException">The token was canceled.</exception>
    /// <inheritdoc cref="Create(string, FilePipeWriterOptions?)" path="/exception"/>
    public static ValueTask<FilePipeWriter> OpenAsync(string path, FilePipeWriterOptions? options = null,
        CancellationToken cancellationToken = default)
    {
        options ??= FilePipeWriterOptions.Default;
        options.ValidateForPath();
        ArgumentException.ThrowIfNullOrEmpty(path);
        FileOpening.ThrowIfNotSupported(options.Backend);
        FileToOpen file = WriterFile.ToOpen(path, options).WithFullPath();
        return AsyncOpening.OpenAsync(
            options.Replace || options.Mode == FileMode.CreateNew ? null : new FifoOpening(file),
            fifo => fifo is null ? Create(file.Path, options) : Create(fifo, options, leaveOpen: false, isOpenedByPath: true),
            static opened => opened.Abort(),
            cancellationToken);
    }

    /// <summary>
    /// Returns a writer for an open file. The writer closes the handle when it is completed, unless
    /// <see cref="FilePipeWriterOptions.LeaveOpen"/> is set. If this method throws, the handle stays open.
    /// </summary>
    /// <param name="handle">
    /// A handle that is open for writing. The writer ignores the position of a file that can seek, and begins at
    /// <see cref="FilePipeWriterOptions.Offset"/>.
    /// </param>
    /// <param name="options">How to write; <see langword="null"/> means the defaults.</param>
    /// <exception cref="ArgumentNullException"><paramref name="handle"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException">
    /// <paramref name="handle"/> is invalid, an option is set that needs a path, or <see cref="FilePipeWriterOptions.Offset"/> is set and
    /// the handle appends.
    /// </exception>
    /// <exception cref="ObjectDisposedException"><paramref name="handle"/> is closed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <see cref="FilePipeWriterOptions.ResumeWriterThreshold"/> exceeds <see cref="FilePipeWriterOptions.PauseWriterThreshold"/>.
    /// </exception>
    /// <exception cref="UnauthorizedAccessException">The handle is that of a folder, or is not open for writing.</exception>
    /// <exception cref="NotSupportedException">
    /// <see cref="FilePipeWriterOptions.Offset"/> is not 0 and the file cannot seek, or the handle is open for direct I/O (O_DIRECT,
    /// FILE_FLAG_NO_BUFFERING).
    /// </exception>
    /// <exception cref="PlatformNotSupportedException">
    /// This system does not have the <see cref="FilePipeWriterOptions.Backend"/> that the options name.
    /// </exception>
    public static FilePipeWriter Create(SafeFileHandle handle, FilePipeWriterOptions? options = null)
        => new(WriterFile.Attach(handle, options ??= FilePipeWriterOptions.Default), options);

    /// <summary>
    /// Returns a writer for the standard output of this process, which may be a file, a pipe, a terminal or a socket. The writer never
    /// closes it.
    /// </summary>
    /// <remarks>
    /// <para>It begins at the position of the open file, where the shell or an earlier program has stopped, and appends if the shell
    /// appends (<c>&gt;&gt;</c>). So <c>(echo header; program) &gt; file</c> keeps both.</para>
    /// <para><c>FilePipeWriter.Create("/dev/stdout")</c> is different: it opens the underlying file again, and empties it.
    /// <see cref="Console"/> has a buffer of its own: flush what you have written there first.</para>
    /// </remarks>
    /// <param name="options">
    /// How to write; <see langword="null"/> means the defaults. <see cref="FilePipeWriterOptions.Mode"/>,
    /// <see cref="FilePipeWriterOptions.Offset"/> and options that need a path cannot be set.
    /// </param>
    /// <exception cref="ArgumentException">An option is set that cannot be set for standard output.</exception>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <see cref="FilePipeWriterOptions.ResumeWriterThreshold"/> exceeds <see cref="FilePipeWriterOptions.PauseWriterThreshold"/>.
    /// </exception>
    /// <exception cref="PlatformNotSupportedException">
    /// This system does not have the <see cref="FilePipeWriterOptions.Backend"/> that the options name.
    /// </exception>
    /// <exception cref="IOException">This process has no standard output.</exception>
    public static FilePipeWriter OpenStandardOutput(FilePipeWriterOptions? options = null)
        => new(WriterFile.OpenStandardOutput(options ??= FilePipeWriterOptions.Default), options);

    /// <summary>For tests: with <see cref="FilePipeWriterOptions.Replace"/>, and with substitutes for the system calls.</summary>
    internal static FilePipeWriter Create(string path, FilePipeWriterOptions options, object calls)
        => new(WriterFile.Open(path, options, calls), options);

    internal static FilePipeWriter Create(OpenedFile backend, FilePipeWriterOptions options, bool leaveOpen, bool isOpenedByPath,
        FastWrites? writes = null)
        => new(WriterFile.Of(backend, options, leaveOpen, isOpenedByPath), options, writes);
}
