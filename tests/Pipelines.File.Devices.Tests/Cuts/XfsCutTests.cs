namespace FileDevicesTests;

public sealed class XfsCutTests() : CutTests(FileSystemKind.Xfs);
