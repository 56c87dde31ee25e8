namespace FilePipelines.Devices.Tests;

public sealed class BtrfsCutTests() : CutTests(FileSystemKind.Btrfs);
