namespace FileDevicesTests;

public sealed class Ext4FailureTests() : FailureTests(FileSystemKind.Ext4);
