namespace Pipelines.File;

/// <summary>
/// Takes one record from the bytes that have come so far, as a <see cref="RecordSpanParser{T}"/> does. It is implemented by a struct: then
/// the runtime compiles the parser into the loop over the records, which saves a call for each of them.
/// </summary>
/// <remarks>
/// The struct is copied, above all by <see cref="RecordBatch{T, TParser}.Copy"/>, and the copies share what its fields refer to. Several
/// threads may use copied batches at once, so these objects have to be immutable, or safe for them.
/// </remarks>
/// <typeparam name="T">The type of a record. A <see langword="ref struct"/> may refer to the bytes.</typeparam>
public interface IRecordParser<T>
    where T : allows ref struct
{
    /// <summary>
    /// Takes one record from the bytes. It may be called several times for the same bytes, so it changes no state of the parser.
    /// </summary>
    /// <inheritdoc cref="RecordSpanParser{T}" path="/remarks"/>
    /// <inheritdoc cref="RecordSpanParser{T}" path="/param"/>
    /// <inheritdoc cref="RecordSpanParser{T}" path="/returns"/>
    OperationStatus Parse(ReadOnlySpan<byte> bytes, out int consumed, out T record);
}
