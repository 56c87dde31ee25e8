using System.Buffers;

namespace Pipelines.File;

/// <summary>Takes one record from the bytes that have come so far.</summary>
/// <typeparam name="T">The record.</typeparam>
/// <param name="reader">The bytes, from the beginning of a record on. With <see cref="OperationStatus.Done"/> it is left behind the record; otherwise where it is left has no meaning.</param>
/// <param name="record">The record, with <see cref="OperationStatus.Done"/>.</param>
/// <returns>
/// <see cref="OperationStatus.Done"/>; <see cref="OperationStatus.NeedMoreData"/> where the record may be whole with more bytes; <see cref="OperationStatus.InvalidData"/> where no more bytes make it one.
/// </returns>
public delegate OperationStatus RecordParser<T>(ref SequenceReader<byte> reader, out T record);
