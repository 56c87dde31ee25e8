namespace TailSample;

/// <summary>Follows what was asked for, and leaves a checkpoint of what is in the output.</summary>
internal static class TailProgram
{
    /// <summary>Until that is canceled.</summary>
    /// <exception cref="IOException">A file cannot be read, or the output or the checkpoint cannot be written.</exception>
    internal static async Task RunAsync(Settings settings, CancellationToken cancellationToken)
    {
        await using Output output = await Output.OpenAsync(settings);
        using CancellationTokenSource ended = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        Names names = new(settings, output);
        Task saving = output.SaveAsync(ended.Token);
        try
        {
            await await Task.WhenAny(names.RunAsync(ended.Token), saving);
        }
        catch (OperationCanceledException) when (cancellationToken.IsCancellationRequested)
        {
            // Nothing is wrong.
        }
        finally
        {
            await ended.CancelAsync();
            await ((Task)Task.WhenAll(names.EndAsync(), saving)).ConfigureAwait(ConfigureAwaitOptions.SuppressThrowing);
        }
    }
}
