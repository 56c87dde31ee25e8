using System.Runtime.Versioning;

namespace Pipelines.File.IO;

/// <summary>An operation of <see cref="SynchronousFile"/>.</summary>
[SupportedOSPlatform("windows")]
internal sealed class SynchronousRequest(SynchronousFile backend) : FileRequest
{
    /// <summary>The <see cref="FileRequest.Generation"/> that was canceled last. The back end's lock guards it.</summary>
    internal int? CanceledGeneration { get; set; }

    internal override void Queue() => backend.Hand(this);

    protected override void Perform() => throw new NotSupportedException();

    protected override void Recycle()
    {
    }
}
