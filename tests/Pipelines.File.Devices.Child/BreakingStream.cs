namespace FilePipelines.Devices.Child;

/// <summary>A body whose client goes away after so many bytes.</summary>
internal sealed class BreakingStream(byte[] content, int breaksAt) : MemoryStream(content)
{
    public override ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
        => Position >= breaksAt ? throw new IOException("The client has gone.")
            : base.ReadAsync(buffer[..(int)Math.Min(buffer.Length, breaksAt - Position)], cancellationToken);
}
