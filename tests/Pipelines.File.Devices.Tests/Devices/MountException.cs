namespace FilePipelines.Devices.Tests;

/// <summary>The file system cannot be mounted: it is damaged.</summary>
internal sealed class MountException(string message) : IOException(message);
