namespace FilePipelines.Devices.Tests;

public sealed class Ext4CutTests() : CutTests(FileSystemKind.Ext4);
