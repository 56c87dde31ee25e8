namespace FilePipelines.Devices.Tests;

/// <summary>What the system asks of the disk.</summary>
/// <param name="Kind">What is to be done.</param>
/// <param name="Number">The how-manieth request of this kind it is, from 1.</param>
/// <param name="Offset">Bytes from the beginning of the disk.</param>
/// <param name="Length">Bytes.</param>
internal readonly record struct DeviceRequest(DeviceRequestKind Kind, int Number, long Offset, int Length);
