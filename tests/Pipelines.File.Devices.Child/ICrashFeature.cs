namespace FilePipelines.Devices.Child;

/// <summary>One feature of the library under the crash program.</summary>
internal interface ICrashFeature
{
    /// <summary>
    /// Compares the files with the expected state, and repairs what a crash may leave as a program would: a torn end is cut.
    /// </summary>
    /// <param name="isLast">Whether nothing is written any more: what follows must catch up.</param>
    Task CheckAsync(bool isLast);

    /// <summary>Performs operations until the process is killed or an operation fails.</summary>
    Task RunAsync(Random random);
}
