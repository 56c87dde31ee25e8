namespace FilePipelines.Devices.Tests;

/// <summary>What was acknowledged is not there.</summary>
internal sealed class LostPromiseException(string message, Exception? inner = null) : Exception(message, inner);
