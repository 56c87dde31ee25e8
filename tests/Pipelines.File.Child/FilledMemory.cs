namespace FilePipelines.Child;

/// <summary>Takes the memory of a process with a limit, so that not even a small object is left.</summary>
internal sealed class FilledMemory
{
    private object?[]? _first;

    internal void Fill()
    {
        for (int length = 1 << 17; length >= 1; length /= 2)
        {
            try
            {
                while (true)
                {
                    object?[] taken = new object?[length];
                    taken[0] = _first;
                    _first = taken;
                }
            }
            catch (OutOfMemoryException)
            {
                // Smaller ones.
            }
        }
    }

    internal void Free()
    {
        _first = null;
        GC.Collect();
    }
}
