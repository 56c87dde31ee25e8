namespace FilePipelines.Devices.Tests;

public sealed class BtrfsFailureTests() : FailureTests(FileSystemKind.Btrfs);
