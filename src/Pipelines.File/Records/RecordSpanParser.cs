namespace Pipelines.File;

/// <summary>
/// Takes one record from the bytes that have come so far. It may be called several times for the same bytes, so it has no state of its own.
/// </summary>
/// <remarks>
/// A parser that knows how long an incomplete record is should say so in <paramref name="consumed"/>: it is then called again when so many
/// bytes are there, and sees a long record three times at most. One that returns 0 there is called again after each read, or, in a file
/// whose length is known, when twice as many bytes are there.
/// </remarks>
/// <typeparam name="T">The type of a record. A <see langword="ref struct"/> may refer to the bytes.</typeparam>
/// <param name="bytes">The bytes, which begin with the record. A record is always in one span.</param>
/// <param name="consumed">
/// The length of the record, bytes, if the parser returns <see cref="OperationStatus.Done"/>. With
/// <see cref="OperationStatus.NeedMoreData"/>: how many bytes it needs at least, counted from the beginning of the record; 0, or less than
/// there are, if it does not know. More than the maxLength of the reading is an <see cref="InvalidRecordException"/> at once. Otherwise it
/// does not matter.
/// </param>
/// <param name="record">The record, if the parser returns <see cref="OperationStatus.Done"/>.</param>
/// <returns>
/// <see cref="OperationStatus.Done"/> if the record is whole; <see cref="OperationStatus.NeedMoreData"/> if more bytes may complete it;
/// <see cref="OperationStatus.InvalidData"/> if no further byte can make it a record.
/// </returns>
public delegate OperationStatus RecordSpanParser<T>(ReadOnlySpan<byte> bytes, out int consumed, out T record)
    where T : allows ref struct;
