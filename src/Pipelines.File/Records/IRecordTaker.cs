namespace Pipelines.File.Records;

/// <summary>Takes records off what was read: a struct, so that a record costs no call by interface.</summary>
/// <typeparam name="T">The type of a record.</typeparam>
internal interface IRecordTaker<T>
{
    /// <summary>Takes the next record. <see langword="false"/>: it takes more bytes than are there.</summary>
    /// <param name="rest">What was read and not taken; not empty. Unchanged by an exception.</param>
    /// <param name="isEnd">Whether nothing comes behind it.</param>
    /// <param name="record">The record.</param>
    bool TryTake(ref ReadOnlySequence<byte> rest, bool isEnd, out T record);
}
