namespace Pipelines.File.IO;

/// <summary>Operations of one type that wait to be used again, so that a file costs none: a stack that keeps at most <see cref="MaxPooled"/>.</summary>
internal sealed class RequestPool<T>
    where T : FileRequest
{
    private const int MaxPooled = 64;

    // Guards _free.
    private readonly Lock _lock = new();
    private readonly Stack<T> _free = new();

    internal T? TryPop()
    {
        lock (_lock)
        {
            return _free.TryPop(out T? operation) ? operation : null;
        }
    }

    internal void Push(T operation)
    {
        lock (_lock)
        {
            if (_free.Count < MaxPooled)
            {
                _free.Push(operation);
            }
        }
    }
}
