using Microsoft.Extensions.FileProviders;
using Microsoft.Extensions.Primitives;
using Microsoft.Net.Http.Headers;

namespace Pipelines.File.AspNetCore;

/// <summary>Shows a compressed variant, such as app.js.br beside app.js, for the file that it was made of.</summary>
/// <param name="inner">The files.</param>
/// <param name="order">Which encodings the client takes, and in which order: what <see cref="OrderOf"/> has returned.</param>
internal sealed class PrecompressedFiles(IFileProvider inner, int order) : IFileProvider
{
    private const string Brotli = "br";
    private const string Gzip = "gzip";

    private static readonly string[][] s_orders = [[], [Brotli], [Gzip], [Brotli, Gzip], [Gzip, Brotli]];

    internal static int Orders => s_orders.Length;

    /// <summary>Which variants a client takes. Of two that it likes equally, Brotli comes first. A malformed header takes none.</summary>
    internal static int OrderOf(StringValues acceptEncoding)
    {
        if (!StringWithQualityHeaderValue.TryParseStrictList(acceptEncoding, out IList<StringWithQualityHeaderValue>? taken))
        {
            return 0;
        }

        double least = QualityOf("identity") ?? 0;
        double brotli = QualityOf(Brotli) ?? QualityOf("*") ?? 0;

        // RFC 9110, 8.4.1.3: x-gzip is the same.
        double gzip = QualityOf(Gzip, "x-gzip") ?? QualityOf("*") ?? 0;
        bool takesBrotli = brotli > 0 && brotli >= least;
        bool takesGzip = gzip > 0 && gzip >= least;
        return !takesGzip ? (takesBrotli ? 1 : 0) : !takesBrotli ? 2 : gzip > brotli ? 4 : 3;

        // If a name is there more than once, a refusal counts.
        double? QualityOf(string name, string alias = "") => taken.Where(one => one.Value.Equals(name, StringComparison.OrdinalIgnoreCase)
            || one.Value.Equals(alias, StringComparison.OrdinalIgnoreCase)).Min(static one => (double?)(one.Quality ?? 1));
    }

    public IFileInfo GetFileInfo(string subpath)
    {
        IFileInfo file = inner.GetFileInfo(subpath);
        return file.Exists && s_orders[order].Select(encoding => VariantOf(subpath, file, encoding))
            .FirstOrDefault(static variant => variant is not null) is { } variant ? variant : file;
    }

    public IDirectoryContents GetDirectoryContents(string subpath) => inner.GetDirectoryContents(subpath);

    public IChangeToken Watch(string filter) => inner.Watch(filter);

    private Variant? VariantOf(string subpath, IFileInfo file, string encoding)
    {
        IFileInfo found = inner.GetFileInfo(subpath + (encoding == Brotli ? ".br" : ".gz"));

        // The middleware makes the entity tag of time and length: no two that clients can get for one path have both.
        return found is { Exists: true, IsDirectory: false, Length: > 0 } && found.Length < file.Length
            && found.LastModified >= file.LastModified
            && (found.PhysicalPath is null || new FileInfo(found.PhysicalPath).LinkTarget is null)
            && (encoding == Brotli || !HaveOneTag(found, inner.GetFileInfo(subpath + ".br"))) ? new Variant(found, encoding) : null;
    }

    private static bool HaveOneTag(IFileInfo one, IFileInfo other)
        => other.Exists && one.Length == other.Length
            && one.LastModified.ToUnixTimeSeconds() == other.LastModified.ToUnixTimeSeconds();

    /// <summary>A variant, as the middleware sends it.</summary>
    internal sealed class Variant(IFileInfo file, string encoding) : IFileInfo
    {
        internal string Encoding => encoding;

        public bool Exists => true;

        public long Length => file.Length;

        public string? PhysicalPath => file.PhysicalPath;

        public string Name => file.Name;

        public DateTimeOffset LastModified => file.LastModified;

        public bool IsDirectory => false;

        public Stream CreateReadStream() => file.CreateReadStream();
    }
}
