namespace Pipelines.File.IO;

/// <summary>
/// A request for the cancellation of one use of an operation. It is decided under the owner's lock and made without it; by then the
/// operation may be in another use, which the generation shows.
/// </summary>
internal readonly struct Cancellation(FileRequest operation)
{
    private readonly FileRequest? _operation = operation;
    private readonly int _generation = operation.Generation;

    /// <summary>Cancels the operation. The default value does nothing.</summary>
    internal void Request(OpenedFile backend)
    {
        if (_operation is not null)
        {
            backend.Cancel(_operation, _generation);
        }
    }
}
