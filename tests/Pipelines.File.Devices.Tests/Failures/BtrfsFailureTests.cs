namespace FileDevicesTests;

public sealed class BtrfsFailureTests() : FailureTests(FileSystemKind.Btrfs);
