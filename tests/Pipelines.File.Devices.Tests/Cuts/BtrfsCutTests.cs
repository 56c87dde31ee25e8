namespace FileDevicesTests;

public sealed class BtrfsCutTests() : CutTests(FileSystemKind.Btrfs);
