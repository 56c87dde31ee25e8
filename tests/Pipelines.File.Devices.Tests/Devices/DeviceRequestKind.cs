namespace FilePipelines.Devices.Tests;

internal enum DeviceRequestKind
{
    Read,
    Write,
    Flush,
}
