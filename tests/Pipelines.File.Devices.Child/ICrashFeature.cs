namespace FilePipelines.Devices.Child;

/// <summary>One feature of the library under the crash program.</summary>
internal interface ICrashFeature
{
    /// <summary>
    /// Compares the files with the expected state, and repairs what a crash may leave as a program would: a torn end is cut.
    /// </summary>
    Task CheckAsync();

    /// <summary>Performs operations until the process is killed or an operation fails.</summary>
    Task RunAsync(Random random);
}
