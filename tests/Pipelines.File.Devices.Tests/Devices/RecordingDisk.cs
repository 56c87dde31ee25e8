namespace FilePipelines.Devices.Tests;

/// <summary>
/// A disk that writes down what it is asked, in order, and that fails where it is told to. A flush is written down when it is over and
/// before it is answered, so a promise that rests on it comes later in the recording.
/// </summary>
internal sealed class RecordingDisk(DiskImage image)
{
    // Guards the events and the numbers.
    private readonly Lock _lock = new();
    private readonly List<DeviceEvent> _events = [];
    private readonly int[] _requests = new int[3];

    internal long Length => image.Length;

    internal DiskImage Image => image;

    /// <summary>Decides what a request gets, on the disk's own thread: it may sleep or wait.</summary>
    internal Func<DeviceRequest, DeviceAnswer>? Answer { get; set; }

    /// <summary>What was recorded until now.</summary>
    internal DeviceEvent[] Recorded
    {
        get
        {
            lock (_lock)
            {
                return [.. _events];
            }
        }
    }

    internal int Requests(DeviceRequestKind kind)
    {
        lock (_lock)
        {
            return _requests[(int)kind];
        }
    }

    /// <summary>Writes down that the program was told this.</summary>
    internal void Acknowledge(string subject, long value)
    {
        lock (_lock)
        {
            _events.Add(new DeviceEvent(0, null, new Promise(subject, value)));
        }
    }

    internal int Read(long offset, Span<byte> bytes)
    {
        DeviceAnswer answer = Ask(DeviceRequestKind.Read, offset, bytes.Length);
        if (answer.Error != 0)
        {
            return answer.Error;
        }

        while (bytes.Length > 0)
        {
            int read = RandomAccess.Read(image.Handle, bytes, offset);
            bytes = bytes[read..];
            offset += read;
        }

        return 0;
    }

    /// <param name="offset">Where the bytes go.</param>
    /// <param name="bytes">They belong to the recording from here on.</param>
    internal int Write(long offset, byte[] bytes)
    {
        DeviceAnswer answer = Ask(DeviceRequestKind.Write, offset, bytes.Length);
        byte[] kept = answer.Error == 0 ? bytes : bytes[..answer.Torn];
        if (kept.Length > 0)
        {
            RandomAccess.Write(image.Handle, kept, offset);
            lock (_lock)
            {
                _events.Add(new DeviceEvent(offset, kept, null));
            }
        }

        return answer.Error;
    }

    internal int Flush()
    {
        DeviceAnswer answer = Ask(DeviceRequestKind.Flush, 0, 0);
        if (answer.Error == 0)
        {
            lock (_lock)
            {
                _events.Add(default);
            }
        }

        return answer.Error;
    }

    private DeviceAnswer Ask(DeviceRequestKind kind, long offset, int length)
    {
        int number;
        lock (_lock)
        {
            number = ++_requests[(int)kind];
        }

        return Answer?.Invoke(new DeviceRequest(kind, number, offset, length)) ?? DeviceAnswer.Done;
    }
}
