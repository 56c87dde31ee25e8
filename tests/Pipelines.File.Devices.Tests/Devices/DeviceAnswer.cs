namespace FilePipelines.Devices.Tests;

/// <summary>What the disk answers.</summary>
/// <param name="Error">The errno; 0: done.</param>
/// <param name="Torn">Of a write with an error: how many of its bytes are on the disk all the same, a multiple of 512.</param>
internal readonly record struct DeviceAnswer(int Error, int Torn = 0)
{
    internal static DeviceAnswer Done => default;
}
