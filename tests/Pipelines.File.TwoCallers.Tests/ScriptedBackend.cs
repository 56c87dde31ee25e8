using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;
using Pipelines.File;
using Pipelines.File.IO;

namespace FilePipelines.TwoCallers.Tests;

/// <summary>
/// A file in memory, of unknown length. An <see cref="Order"/> decides what it answers, and when; it sees that no operation is used by two,
/// and none after it was given back.
/// </summary>
internal sealed class ScriptedBackend : OpenedFile
{
    /// <summary>Bytes of an operation's memory that are looked at. No operation moves more.</summary>
    internal const int Watched = 256;

    private const byte Lent = 0xEE;

    private static readonly SafeFileHandle s_none = new(-1, ownsHandle: false);

    // What is asked about a file that can seek is asked about this empty one, which is never closed. It keeps its name, because a file that
    // was deleted is closed in another way.
    private static readonly Lazy<SafeFileHandle> s_file = new(static () => File.OpenHandle(
        System.IO.Path.Combine(AppContext.BaseDirectory, "scripted"), FileMode.OpenOrCreate, FileAccess.ReadWrite, FileShare.ReadWrite));

    private readonly Order _order;

    // The operations that belong to the system: one at most, as whoever reads or writes a file has one at a time.
    private FileRequest? _lent;
    private volatile FileRequest? _started;

    // Those that were rented and not given back. None is used twice, so that every late use of one is seen.
    private readonly HashSet<FileRequest> _out = [];
    private int _depth;

    internal ScriptedBackend(Order order, bool canSeek)
        : base(canSeek ? s_file.Value : s_none, "scripted", canSeek ? FileProperties.Of(s_file.Value, path: null) : default)
    {
        _order = order;
    }

    /// <summary>The operation that was started and not reported.</summary>
    internal FileRequest? Started => _started;

    /// <summary>Whether the owner asked for the end of what is started.</summary>
    internal bool IsCancelAsked => Started is { IsCancelWanted: true };

    /// <summary>Somebody is in one of the calls of this type.</summary>
    internal bool IsBusy => Volatile.Read(ref _depth) > 0;

    internal int Releases { get; private set; }

    internal int OperationsOut => _out.Count;

    internal override FilePipeBackend Kind => FilePipeBackend.Auto;

    internal override int MaxBuffersPerOperation => 16;

    internal override FileRequest Rent()
    {
        FileRequest request = new();
        _out.Add(request);
        return request;
    }

    internal override void Return(FileRequest request)
    {
        _order.Require(_out.Remove(request) && _lent != request, "an operation is given back once, and when the system is done with it");
        request.Clear();
    }

    private protected override bool TryPerformCore(FileRequest operation, bool mayWait)
    {
        Interlocked.Increment(ref _depth);
        Lend(operation);
        Answer answer = _order.Try(operation, mayWait);
        if (answer != Answer.HandOver)
        {
            CheckLent(operation);
            _lent = null;
            _order.Perform(operation, answer);
        }

        Interlocked.Decrement(ref _depth);
        return answer != Answer.HandOver;
    }

    internal override void PerformElsewhere(FileRequest operation)
    {
        Interlocked.Increment(ref _depth);
        _order.BeforeStart();
        if (_lent != operation)
        {
            Lend(operation);
        }

        _started = operation;
        _order.AfterStart();
        Interlocked.Decrement(ref _depth);
    }

    internal override void Cancel(FileRequest request)
    {
        // It may come late, and then meets the next use.
        Interlocked.Increment(ref _depth);
        _order.BeforeCancel();
        request.IsCancelWanted = true;
        Interlocked.Decrement(ref _depth);
    }

    internal override void Release(bool closeHandle)
    {
        Interlocked.Increment(ref _depth);
        _order.Require(closeHandle, "the handle is closed");
        _order.Require(_lent is null, "the handle is released while an operation is under way");
        _order.Require(OperationsOut == 0, "an operation is given back before the handle is released");
        _order.BeforeRelease();
        Releases++;
        _order.Require(Releases == 1, "the handle is released once");
        Interlocked.Decrement(ref _depth);
    }

    /// <summary>The system is done with what was started. Whether the owner went on with it is seen from <see cref="Started"/>.</summary>
    internal void Report(Answer answer)
    {
        Interlocked.Increment(ref _depth);
        FileRequest operation = _started!;
        _started = null;
        _lent = null;
        CheckLent(operation);
        _order.Perform(operation, answer);

        // What follows runs here, also where it is a caller's code: so an order is one thread's.
        operation.ResumesOnPool = false;
        operation.Complete();
        Interlocked.Decrement(ref _depth);
    }

    /// <summary>The memory is the system's until the operation is reported: nobody else reads or writes it.</summary>
    private void Lend(FileRequest operation)
    {
        _order.Require(_lent is null, "one operation is under way at a time");
        _order.Require(_out.Contains(operation), "an operation that was given back is performed");
        _order.Require(Releases == 0, "an operation is performed after the handle was released");
        _lent = operation;
        if (operation.Kind == FileRequestKind.Read)
        {
            Fill(operation, Lent);
        }
    }

    private void CheckLent(FileRequest operation)
    {
        if (operation.Kind == FileRequestKind.Read)
        {
            int left = Watched;
            foreach (TransferBuffer buffer in operation.Buffers)
            {
                ReadOnlySpan<byte> memory = buffer.Memory.Span[..Math.Min(left, buffer.Memory.Length)];
                _order.Require(!memory.ContainsAnyExcept(Lent), "nobody writes to memory that the system has");
                left -= memory.Length;
            }
        }
    }

    private static void Fill(FileRequest operation, byte value)
    {
        int left = Watched;
        foreach (TransferBuffer buffer in operation.Buffers)
        {
            Span<byte> memory = MemoryMarshal.AsMemory(buffer.Memory).Span[..Math.Min(left, buffer.Memory.Length)];
            memory.Fill(value);
            left -= memory.Length;
        }
    }
}
