using System.IO.Pipelines;
using Microsoft.Win32.SafeHandles;

namespace Pipelines.File;

/// <summary>Gives the factories of System.IO.Pipelines a file end: <c>PipeReader.Create(path)</c>.</summary>
public static class FilePipeExtensions
{
    extension(PipeReader)
    {
        /// <inheritdoc cref="FilePipeReader.Create(string, FilePipeReaderOptions?)"/>
        public static PipeReader Create(string path, FilePipeReaderOptions? options = null) => FilePipeReader.Create(path, options);

        /// <inheritdoc cref="FilePipeReader.Create(SafeFileHandle, FilePipeReaderOptions?)"/>
        public static PipeReader Create(SafeFileHandle handle, FilePipeReaderOptions? options = null) => FilePipeReader.Create(handle, options);
    }
}
