namespace FilePipelines.Tests;

/// <summary>The end of a request, as a task.</summary>
internal sealed class RequestEnd : TaskCompletionSource, IRequestOwner
{
    public static Task Of(OpenedFile file, FileRequest request)
    {
        RequestEnd end = new();
        file.Run(request, end);
        return end.Task;
    }

    public void OnEnded(FileRequest request) => SetResult();
}
