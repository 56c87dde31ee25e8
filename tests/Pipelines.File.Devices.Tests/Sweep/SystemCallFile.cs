namespace FilePipelines.Devices.Tests;

/// <summary>Which argument of a system call tells the file.</summary>
internal enum SystemCallFile
{
    /// <summary>The first is a descriptor.</summary>
    Descriptor,

    /// <summary>The first is a path.</summary>
    Path,

    /// <summary>The first is a folder's descriptor and the second a path, which may be empty.</summary>
    PathAt,
}
