namespace Pipelines.File;

/// <summary>
/// Takes one record from the bytes that have come so far. It may be called several times for the same bytes, so it has no state of its own.
/// </summary>
/// <typeparam name="T">The type of a record. A <see langword="ref struct"/> may refer to the bytes.</typeparam>
/// <param name="bytes">The bytes, which begin with the record. A record is always in one span.</param>
/// <param name="consumed">
/// The length of the record, bytes, if the parser returns <see cref="OperationStatus.Done"/>; otherwise it does not matter.
/// </param>
/// <param name="record">The record, if the parser returns <see cref="OperationStatus.Done"/>.</param>
/// <returns>
/// <see cref="OperationStatus.Done"/> if the record is whole; <see cref="OperationStatus.NeedMoreData"/> if more bytes may complete it;
/// <see cref="OperationStatus.InvalidData"/> if no further byte can make it a record.
/// </returns>
public delegate OperationStatus RecordSpanParser<T>(ReadOnlySpan<byte> bytes, out int consumed, out T record)
    where T : allows ref struct;
