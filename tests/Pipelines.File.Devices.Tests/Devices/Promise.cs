namespace FilePipelines.Devices.Tests;

/// <summary>
/// What the library has acknowledged: of this subject, this value. A later promise of the same subject takes the place of the earlier one.
/// </summary>
internal sealed record Promise(string Subject, long Value);
