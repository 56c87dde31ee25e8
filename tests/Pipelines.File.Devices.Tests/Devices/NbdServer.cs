using System.Buffers.Binary;
using System.Net.Sockets;

namespace FilePipelines.Devices.Tests;

/// <summary>
/// Serves a disk on a Unix socket: the NBD protocol with the fixed newstyle handshake (NetworkBlockDevice/nbd, doc/proto.md). Each
/// connection has a thread of its own, which needs none of the pool: the file system that waits for the disk may be the one that the
/// threads of the pool wait for.
/// </summary>
internal sealed class NbdServer : IDisposable
{
    private const ulong Magic = 0x4E42444D41474943;
    private const ulong OptionMagic = 0x49484156454F5054;
    private const ulong OptionReplyMagic = 0x3E889045565A9;
    private const uint RequestMagic = 0x25609513;
    private const uint ReplyMagic = 0x67446698;

    // NBD_FLAG_FIXED_NEWSTYLE, NBD_FLAG_NO_ZEROES
    private const ushort HandshakeFlags = 3;

    // NBD_FLAG_HAS_FLAGS, SEND_FLUSH, SEND_FUA, SEND_TRIM, SEND_WRITE_ZEROES
    private const ushort TransmissionFlags = 1 | 4 | 8 | 32 | 64;
    private const ushort ForceUnitAccess = 1;
    private const uint Acknowledged = 1;
    private const uint Information = 3;
    private const uint Unsupported = 0x80000001;
    private const int Einval = 22;
    private const int MaxLength = 32 * 1024 * 1024;

    private readonly RecordingDisk _disk;
    private readonly Socket _listener = new(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);

    // Guarded by itself.
    private readonly List<Socket> _connections = [];
    private readonly List<Thread> _threads = [];

    internal NbdServer(RecordingDisk disk, string socket)
    {
        _disk = disk;
        _listener.Bind(new UnixDomainSocketEndPoint(socket));
        _listener.Listen();
        Start(Accept);
    }

    public void Dispose()
    {
        _listener.Dispose();
        Thread[] threads;
        lock (_connections)
        {
            _connections.ForEach(static connection => connection.Dispose());
            threads = [.. _threads];
        }

        Array.ForEach(threads, static thread => thread.Join());
    }

    private void Start(Action run)
    {
        Thread thread = new(() => run()) { IsBackground = true, Name = "NBD server" };
        lock (_connections)
        {
            _threads.Add(thread);
        }

        thread.Start();
    }

    private void Accept()
    {
        try
        {
            while (true)
            {
                Socket connection = _listener.Accept();
                lock (_connections)
                {
                    _connections.Add(connection);
                }

                Start(() => Serve(connection));
            }
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            // Disposed.
        }
    }

    private void Serve(Socket connection)
    {
        using NetworkStream stream = new(connection, ownsSocket: true);
        try
        {
            if (Negotiate(stream))
            {
                while (Perform(stream))
                {
                }
            }
        }
        catch (Exception e) when (e is IOException or ObjectDisposedException)
        {
            // The client has gone, or the server is disposed.
        }
    }

    /// <summary>The handshake. <see langword="false"/>: the client has given up.</summary>
    private bool Negotiate(NetworkStream stream)
    {
        Span<byte> buffer = stackalloc byte[18];
        BinaryPrimitives.WriteUInt64BigEndian(buffer, Magic);
        BinaryPrimitives.WriteUInt64BigEndian(buffer[8..], OptionMagic);
        BinaryPrimitives.WriteUInt16BigEndian(buffer[16..], HandshakeFlags);
        stream.Write(buffer);
        stream.ReadExactly(buffer[..4]);
        bool hasZeroes = (buffer[3] & 2) == 0;
        while (true)
        {
            stream.ReadExactly(buffer[..16]);
            uint option = BinaryPrimitives.ReadUInt32BigEndian(buffer[8..]);
            byte[] data = new byte[BinaryPrimitives.ReadUInt32BigEndian(buffer[12..])];
            stream.ReadExactly(data);
            switch (option)
            {
                // NBD_OPT_EXPORT_NAME, the only option without a reply of the usual form.
                case 1:
                    byte[] export = new byte[hasZeroes ? 134 : 10];
                    BinaryPrimitives.WriteInt64BigEndian(export, _disk.Length);
                    BinaryPrimitives.WriteUInt16BigEndian(export.AsSpan(8), TransmissionFlags);
                    stream.Write(export);
                    return true;

                // NBD_OPT_ABORT
                case 2:
                    ReplyToOption(stream, option, Acknowledged, []);
                    return false;

                // NBD_OPT_INFO, NBD_OPT_GO: NBD_INFO_EXPORT tells length and flags.
                case 6 or 7:
                    byte[] information = new byte[12];
                    BinaryPrimitives.WriteInt64BigEndian(information.AsSpan(2), _disk.Length);
                    BinaryPrimitives.WriteUInt16BigEndian(information.AsSpan(10), TransmissionFlags);
                    ReplyToOption(stream, option, Information, information);
                    ReplyToOption(stream, option, Acknowledged, []);
                    if (option == 7)
                    {
                        return true;
                    }

                    break;
                default:
                    ReplyToOption(stream, option, Unsupported, []);
                    break;
            }
        }
    }

    private static void ReplyToOption(NetworkStream stream, uint option, uint type, byte[] data)
    {
        byte[] reply = new byte[20 + data.Length];
        BinaryPrimitives.WriteUInt64BigEndian(reply, OptionReplyMagic);
        BinaryPrimitives.WriteUInt32BigEndian(reply.AsSpan(8), option);
        BinaryPrimitives.WriteUInt32BigEndian(reply.AsSpan(12), type);
        BinaryPrimitives.WriteInt32BigEndian(reply.AsSpan(16), data.Length);
        data.CopyTo(reply, 20);
        stream.Write(reply);
    }

    /// <summary>One request. <see langword="false"/>: the client has said good-bye.</summary>
    private bool Perform(NetworkStream stream)
    {
        Span<byte> header = stackalloc byte[28];
        stream.ReadExactly(header);
        if (BinaryPrimitives.ReadUInt32BigEndian(header) != RequestMagic)
        {
            throw new IOException("This is no request of NBD.");
        }

        bool isForced = (BinaryPrimitives.ReadUInt16BigEndian(header[4..]) & ForceUnitAccess) != 0;
        ushort type = BinaryPrimitives.ReadUInt16BigEndian(header[6..]);
        ulong cookie = BinaryPrimitives.ReadUInt64BigEndian(header[8..]);
        long offset = BinaryPrimitives.ReadInt64BigEndian(header[16..]);
        int length = BinaryPrimitives.ReadInt32BigEndian(header[24..]);
        bool isWithin = offset >= 0 && length is >= 0 and <= MaxLength && offset + length <= _disk.Length;
        byte[] reply = new byte[16 + (type == 0 && isWithin ? length : 0)];
        int error = Einval;
        switch (type)
        {
            // NBD_CMD_READ
            case 0 when isWithin:
                error = _disk.Read(offset, reply.AsSpan(16));
                break;

            // NBD_CMD_WRITE, and WRITE_ZEROES. With FUA it is answered when it is on the device.
            case 1 or 6 when isWithin:
                byte[] bytes = new byte[length];
                if (type == 1)
                {
                    stream.ReadExactly(bytes);
                }

                error = _disk.Write(offset, bytes);
                if (error == 0 && isForced)
                {
                    error = _disk.Flush();
                }

                break;

            // NBD_CMD_DISC
            case 2:
                return false;

            // NBD_CMD_FLUSH
            case 3:
                error = _disk.Flush();
                break;

            // NBD_CMD_TRIM: a hint.
            case 4 when isWithin:
                error = 0;
                break;
        }

        BinaryPrimitives.WriteUInt32BigEndian(reply, ReplyMagic);
        BinaryPrimitives.WriteInt32BigEndian(reply.AsSpan(4), error);
        BinaryPrimitives.WriteUInt64BigEndian(reply.AsSpan(8), cookie);
        stream.Write(error == 0 ? reply : reply.AsSpan(0, 16));
        return true;
    }
}
