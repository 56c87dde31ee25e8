namespace Pipelines.File.Lines;

/// <summary>Enumerates the lines of a pipe one by one.</summary>
internal abstract class LineByLine<T>(LineBatches batches) : IAsyncEnumerable<T>, IAsyncEnumerator<T>
{
    // Line n of the batch, counted from 1, is between the ends n - 1 and n.
    private int[] _ends = [-1];
    private int _count;
    private int _line;
    private CancellationToken _token;

    public abstract T Current { get; }

    /// <summary>The batch that holds the current line.</summary>
    protected ReadOnlyMemory<byte> Memory { get; private set; }

    /// <summary>The array of the batch, and its index there; <see langword="null"/> if its memory is not a part of an array.</summary>
    protected byte[]? Array { get; private set; }

    protected int ArrayStart { get; private set; }

    /// <summary>The index of the current line in the batch.</summary>
    protected int Start => _ends[_line - 1] + 1;

    /// <summary>The index of its line feed.</summary>
    protected int End => _ends[_line];

    /// <summary>The current line without its line end.</summary>
    protected ReadOnlySpan<byte> Line
        => LineIndex.Line(Array is { } array ? new ReadOnlySpan<byte>(array, ArrayStart, Memory.Length) : Memory.Span, Start, End);

    public IAsyncEnumerator<T> GetAsyncEnumerator(CancellationToken cancellationToken = default)
    {
        batches.GetAsyncEnumerator(cancellationToken);
        _token = batches.CancellationToken;
        return this;
    }

    public ValueTask<bool> MoveNextAsync()
    {
        int line = _line + 1;
        if (line > _count)
        {
            return ReadAsync();
        }

        if (_token.IsCancellationRequested)
        {
            return ValueTask.FromCanceled<bool>(_token);
        }

        _line = line;
        return new ValueTask<bool>(true);
    }

    public virtual ValueTask DisposeAsync()
    {
        batches.Returned = _line > 0 ? End + 1 : 0;
        _line = _count = 0;
        return batches.DisposeAsync();
    }

    /// <summary>Begins a batch, and returns how many bytes at its beginning are not a part of its first line.</summary>
    /// <param name="batch">The batch.</param>
    /// <param name="offset">Its file offset.</param>
    /// <param name="lines">How many lines it has.</param>
    protected virtual int Begin(ReadOnlySpan<byte> batch, long offset, int lines) => 0;

    private async ValueTask<bool> ReadAsync()
    {
        int start;
        do
        {
            _line = _count = 0;
            if (!await batches.MoveNextAsync().ConfigureAwait(false))
            {
                return false;
            }

            Memory = batches.Bytes;
            MemoryMarshal.TryGetArray(Memory, out ArraySegment<byte> array);
            Array = array.Array;
            ArrayStart = array.Offset;
            _ends = batches.Ends;
            start = Begin(Memory.Span, batches.Offset, batches.Count);
        }
        while (start == batches.Length);
        _ends[0] = start - 1;
        _count = batches.Count;
        _line = 1;
        return true;
    }
}
