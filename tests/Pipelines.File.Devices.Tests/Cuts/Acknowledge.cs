namespace FilePipelines.Devices.Tests;

/// <summary>Writes down what the library has promised, between what the disk is asked before and after.</summary>
internal delegate void Acknowledge(string subject, long value);
