namespace FileDevicesTests;

internal enum DeviceRequestKind
{
    Read,
    Write,
    Flush,
}
