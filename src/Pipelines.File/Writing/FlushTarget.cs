namespace Pipelines.File.Writing;

/// <summary>What a flush waits for.</summary>
/// <param name="Bytes">The number of bytes of the writer.</param>
/// <param name="Synced">Whether they are to be on the device, and not only written.</param>
internal readonly record struct FlushTarget(long Bytes, bool Synced)
{
    internal bool IsReached(long written, long synced) => Bytes <= (Synced ? synced : written);
}
