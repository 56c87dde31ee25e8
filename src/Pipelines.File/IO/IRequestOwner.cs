namespace Pipelines.File.IO;

/// <summary>Whoever has a request performed, and goes on when it is over.</summary>
internal interface IRequestOwner
{
    /// <summary>
    /// The run that <see cref="OpenedFile.Run"/> has begun is over, and its result recorded. Called once for each run, without a lock, on
    /// the thread that ends it: a waiting thread, the poller's, the one that cancels it, or the one that has begun it, within
    /// <see cref="OpenedFile.Run"/>; with <see cref="FileRequest.ResumesOnPool"/> on a thread of the application's. So it does not wait. It
    /// may run the request again, which a waiting thread then performs next.
    /// </summary>
    /// <param name="request">The request, which belongs to its owner again.</param>
    void OnEnded(FileRequest request);

    /// <summary>
    /// The run of a request with <see cref="FileRequest.ResumesOnPool"/> is over: has a thread of the application's call
    /// <see cref="FileRequest.End"/>. It does not wait.
    /// </summary>
    /// <param name="request">The request.</param>
    void Resume(FileRequest request) => ThreadPool.UnsafeQueueUserWorkItem(request, preferLocal: false);
}
