namespace FilePipelines.Devices.Child;

/// <summary>The files are not what the expected state says.</summary>
internal sealed class WrongStateException(string message) : Exception(message)
{
    internal static void Demand(bool isRight, string message)
    {
        if (!isRight)
        {
            throw new WrongStateException(message);
        }
    }
}
