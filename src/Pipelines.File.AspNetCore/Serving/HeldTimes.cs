using Microsoft.Extensions.FileProviders;
using Microsoft.Extensions.Primitives;

namespace Pipelines.File.AspNetCore;

/// <summary>Shows a file whose time nobody can hold as one of <see cref="FileTimes.Unknown"/>, so that it is served.</summary>
internal sealed class HeldTimes(IFileProvider inner) : IFileProvider
{
    public IFileInfo GetFileInfo(string subpath)
    {
        IFileInfo file = inner.GetFileInfo(subpath);
        return file.Exists && FileTimes.Held(static file => file.LastModified.UtcDateTime, file) == FileTimes.Unknown
            ? new OfUnknownTime(file) : file;
    }

    public IDirectoryContents GetDirectoryContents(string subpath) => inner.GetDirectoryContents(subpath);

    public IChangeToken Watch(string filter) => inner.Watch(filter);

    private sealed class OfUnknownTime(IFileInfo file) : IFileInfo
    {
        public bool Exists => file.Exists;

        public long Length => file.Length;

        public string? PhysicalPath => file.PhysicalPath;

        public string Name => file.Name;

        public DateTimeOffset LastModified => FileTimes.Unknown;

        public bool IsDirectory => file.IsDirectory;

        public Stream CreateReadStream() => file.CreateReadStream();
    }
}
