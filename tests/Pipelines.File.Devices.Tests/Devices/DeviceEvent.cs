namespace FilePipelines.Devices.Tests;

/// <summary>One step of a recording.</summary>
/// <param name="Offset">Of a write, bytes.</param>
/// <param name="Written">The bytes of a write.</param>
/// <param name="Promise">What the program was told at this moment.</param>
/// <remarks>With neither bytes nor a promise it is a flush: what was written before it is on the device.</remarks>
internal readonly record struct DeviceEvent(long Offset, byte[]? Written, Promise? Promise)
{
    internal bool IsFlush => Written is null && Promise is null;
}
