namespace FilePipelines.Devices.Tests;

public sealed class XfsFailureTests() : FailureTests(FileSystemKind.Xfs);
