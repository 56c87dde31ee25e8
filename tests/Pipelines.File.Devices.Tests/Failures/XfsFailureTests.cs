namespace FileDevicesTests;

public sealed class XfsFailureTests() : FailureTests(FileSystemKind.Xfs);
