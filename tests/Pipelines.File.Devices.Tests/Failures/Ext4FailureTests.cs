namespace FilePipelines.Devices.Tests;

public sealed class Ext4FailureTests() : FailureTests(FileSystemKind.Ext4);
