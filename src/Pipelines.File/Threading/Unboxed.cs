namespace Pipelines.File.Threading;

/// <summary>
/// Awaits as ConfigureAwait(false) does, without allocating. On Windows the runtime boxes the awaiter of a <see cref="ValueTask"/> at every
/// await that suspends (.NET 10; 32 bytes and more); on Linux it does not. It never boxes an awaiter whose only interface is
/// <see cref="ICriticalNotifyCompletion"/>. The loops use this, because they await every read and write.
/// </summary>
internal static class Unboxed
{
    internal static Awaiter WithoutBox(this ValueTask task) => new(task);

    internal static Awaiter<T> WithoutBox<T>(this ValueTask<T> task) => new(task);

    internal readonly struct Awaiter(ValueTask task) : ICriticalNotifyCompletion
    {
        private readonly ConfiguredValueTaskAwaitable.ConfiguredValueTaskAwaiter _awaiter = task.ConfigureAwait(false).GetAwaiter();

        public bool IsCompleted => _awaiter.IsCompleted;

        public Awaiter GetAwaiter() => this;

        public void GetResult() => _awaiter.GetResult();

        public void OnCompleted(Action continuation) => _awaiter.OnCompleted(continuation);

        public void UnsafeOnCompleted(Action continuation) => _awaiter.UnsafeOnCompleted(continuation);
    }

    internal readonly struct Awaiter<T>(ValueTask<T> task) : ICriticalNotifyCompletion
    {
        private readonly ConfiguredValueTaskAwaitable<T>.ConfiguredValueTaskAwaiter _awaiter = task.ConfigureAwait(false).GetAwaiter();

        public bool IsCompleted => _awaiter.IsCompleted;

        public Awaiter<T> GetAwaiter() => this;

        public T GetResult() => _awaiter.GetResult();

        public void OnCompleted(Action continuation) => _awaiter.OnCompleted(continuation);

        public void UnsafeOnCompleted(Action continuation) => _awaiter.UnsafeOnCompleted(continuation);
    }
}
