namespace FilePipelines.Tests;

/// <summary>How an overlapped call finishes.</summary>
public enum CallFinish
{
    /// <summary>As the system does it.</summary>
    Real,

    /// <summary>TRUE. Done on another handle, since Wine always says ERROR_IO_PENDING for files.</summary>
    AtOnce,

    /// <summary>ERROR_IO_PENDING, but the call returns only after it has ended.</summary>
    CompletionFirst,
}
