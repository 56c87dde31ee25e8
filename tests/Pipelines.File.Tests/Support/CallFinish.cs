namespace FilePipelinesTests;

/// <summary>How an overlapped call finishes.</summary>
public enum CallFinish
{
    /// <summary>As the system does it.</summary>
    Real,

    /// <summary>TRUE, and no completion: FILE_SKIP_COMPLETION_PORT_ON_SUCCESS. Done on another handle, since Wine always says ERROR_IO_PENDING for files.</summary>
    AtOnce,

    /// <summary>ERROR_IO_PENDING, but the call returns only after the completion was queued, and most likely has run.</summary>
    CompletionFirst,

    /// <summary>TRUE although a completion is queued: a file system without the skipping. Only where completions are not skipped.</summary>
    AtOnceWithCompletion,
}
