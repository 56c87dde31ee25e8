namespace Pipelines.File.AspNetCore;

/// <summary>What an upload is doing, which decides what a failure is counted as.</summary>
internal enum UploadStage
{
    /// <summary>The request is checked, and the file is opened.</summary>
    Checking,

    /// <summary>The next bytes are awaited from the client.</summary>
    Reading,

    /// <summary>Bytes are written to the file, or it takes its name.</summary>
    Writing,

    /// <summary>The application inspects the whole upload.</summary>
    Inspecting,

    /// <summary>The application is told that a file is about to be replaced.</summary>
    Replacing,
}
