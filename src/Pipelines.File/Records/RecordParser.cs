namespace Pipelines.File;

/// <summary>Takes one record from the bytes that have come so far.</summary>
/// <typeparam name="T">The type of a record.</typeparam>
/// <param name="reader">
/// The bytes, which begin with the record. A parser that returns <see cref="OperationStatus.Done"/> leaves the reader after the record;
/// otherwise the position does not matter.
/// </param>
/// <param name="record">The record, if the parser returns <see cref="OperationStatus.Done"/>.</param>
/// <returns>
/// <see cref="OperationStatus.Done"/> if the record is whole; <see cref="OperationStatus.NeedMoreData"/> if more bytes may complete it;
/// <see cref="OperationStatus.InvalidData"/> if no further byte can make it a record.
/// </returns>
public delegate OperationStatus RecordParser<T>(ref SequenceReader<byte> reader, out T record);
