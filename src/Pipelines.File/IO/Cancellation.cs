namespace Pipelines.File.IO;

/// <summary>
/// One use of one operation that is to be given up: decided under its owner's lock, requested without it. The operation may serve another
/// purpose by then, which the generation tells.
/// </summary>
internal readonly struct Cancellation(FileRequest operation)
{
    private readonly FileRequest? _operation = operation;
    private readonly int _generation = operation.Generation;

    /// <summary>The default value asks for nothing.</summary>
    internal void Request(OpenedFile backend)
    {
        if (_operation is not null)
        {
            backend.Cancel(_operation, _generation);
        }
    }
}
