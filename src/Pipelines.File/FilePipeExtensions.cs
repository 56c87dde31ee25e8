using System.Diagnostics.CodeAnalysis;
using System.IO.Pipelines;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>Gives the factories of System.IO.Pipelines a file end: <c>PipeReader.Create(path)</c>, <c>PipeWriter.Create(path)</c>.</summary>
[SuppressMessage("Naming", "CA1708:Identifiers should differ by more than case", Justification = "Extension blocks have no names.")]
public static class FilePipeExtensions
{
    extension(PipeReader)
    {
        /// <inheritdoc cref="FilePipeReader.Create(string, FilePipeReaderOptions?)"/>
        public static PipeReader Create(string path, FilePipeReaderOptions? options = null) => FilePipeReader.Create(path, options);

        /// <inheritdoc cref="FilePipeReader.Create(SafeFileHandle, FilePipeReaderOptions?)"/>
        public static PipeReader Create(SafeFileHandle handle, FilePipeReaderOptions? options = null) => FilePipeReader.Create(handle, options);
    }

    extension(PipeWriter)
    {
        /// <inheritdoc cref="FilePipeWriter.Create(string, FilePipeWriterOptions?)"/>
        public static PipeWriter Create(string path, FilePipeWriterOptions? options = null) => FilePipeWriter.Create(path, options);

        /// <inheritdoc cref="FilePipeWriter.Create(SafeFileHandle, FilePipeWriterOptions?)"/>
        public static PipeWriter Create(SafeFileHandle handle, FilePipeWriterOptions? options = null) => FilePipeWriter.Create(handle, options);
    }
}
