namespace Pipelines.File.Records;

/// <summary>Takes records from the bytes that were read. Implemented by structs, so that a record costs no interface call.</summary>
/// <typeparam name="T">The type of a record.</typeparam>
internal interface IRecordTaker<T>
{
    /// <summary>Takes the next record. Returns <see langword="false"/> if the bytes hold no whole record.</summary>
    /// <param name="rest">The bytes that were read and not taken; not empty. An exception leaves it unchanged.</param>
    /// <param name="isEnd">Whether the pipe ends after these bytes.</param>
    /// <param name="record">The record, if the method returns <see langword="true"/>.</param>
    bool TryTake(ref ReadOnlySequence<byte> rest, bool isEnd, out T record);
}
