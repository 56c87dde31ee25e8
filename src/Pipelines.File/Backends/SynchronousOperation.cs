using System.Runtime.Versioning;

namespace Pipelines.File.Backends;

/// <summary>An operation of <see cref="SynchronousBackend"/>.</summary>
[SupportedOSPlatform("windows")]
internal sealed class SynchronousOperation(SynchronousBackend backend) : FileOperation
{
    /// <summary>The <see cref="FileOperation.Generation"/> that was canceled last. The back end's lock guards it.</summary>
    internal int? CanceledGeneration { get; set; }

    internal override void Queue() => backend.Hand(this);

    internal new void Lend(IFileOperationOwner owner) => base.Lend(owner);

    protected override bool Perform() => throw new NotSupportedException();

    protected override void Recycle()
    {
    }
}
