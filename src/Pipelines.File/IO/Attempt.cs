namespace Pipelines.File.IO;

/// <summary>What came of <see cref="OpenedFile.Try"/>.</summary>
internal enum Attempt
{
    /// <summary>The request is finished: its result, error or cancellation is recorded.</summary>
    Done,

    /// <summary>The call would wait, so a thread that may block has to make it.</summary>
    WouldBlock,

    /// <summary>The other side has nothing to give or to take: the request waits until the file is ready, without a thread.</summary>
    NotReady,
}
