namespace Pipelines.File.AspNetCore;

/// <summary>What a request wants of a resumable upload.</summary>
public enum ResumableUploadOperation
{
    /// <summary>To make a new one, perhaps with its first bytes (POST).</summary>
    Create,

    /// <summary>To make a new one of parts that are there (POST with Upload-Concat: final).</summary>
    Concatenate,

    /// <summary>To know its offset and its metadata (HEAD).</summary>
    Read,

    /// <summary>To add bytes (PATCH).</summary>
    Append,

    /// <summary>To remove it (DELETE).</summary>
    Delete,
}
