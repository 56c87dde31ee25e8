namespace Pipelines.File.IO;

internal static unsafe partial class Libc
{
    /// <summary>The number of descriptors (getrlimit(2)).</summary>
    internal const int RLIMIT_NOFILE = 7;

    /// <summary>getrlimit(2): the soft limit, and the hard one behind it.</summary>
    [LibraryImport(Library, EntryPoint = "getrlimit", SetLastError = true)]
    internal static partial int GetResourceLimit(int resource, ulong* limits);
}
