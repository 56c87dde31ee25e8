namespace FileDevicesTests;

public sealed class Ext4CutTests() : CutTests(FileSystemKind.Ext4);
