namespace FilePipelines.Devices.Tests;

public sealed class XfsCutTests() : CutTests(FileSystemKind.Xfs);
