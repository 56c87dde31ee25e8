using System.Globalization;
using System.Text;
using Microsoft.Win32.SafeHandles;

namespace FilePipelines.Devices.Child;

/// <summary>
/// What the files must hold: a text file with a line before each operation and one after it, each a single write(2), which a killed
/// process does not take along. A value is done, or begun and so there or not.
/// </summary>
internal sealed class ExpectedState : IDisposable
{
    private readonly SafeFileHandle _file;

    // Guards the dictionaries and the file's end.
    private readonly Lock _lock = new();
    private readonly Dictionary<string, long> _begun = [];
    private readonly Dictionary<string, long> _done = [];
    private readonly HashSet<(string Subject, long Value)> _dropped = [];
    private long _end;

    internal ExpectedState(string path)
    {
        string text = File.Exists(path) ? File.ReadAllText(path) : "";

        // A torn last line is an operation that nobody was told about.
        string[] lines = text[..(text.LastIndexOf('\n') + 1)].Split('\n', StringSplitOptions.RemoveEmptyEntries);
        foreach (string line in lines)
        {
            string[] parts = line.Split(' ');
            long value = long.Parse(parts[2], CultureInfo.InvariantCulture);
            switch (parts[0])
            {
                case "begin":
                    _begun[parts[1]] = value;
                    break;
                case "done":
                    _done[parts[1]] = value;
                    break;
                default:
                    _dropped.Add((parts[1], value));
                    break;
            }
        }

        // Each start begins with as many lines as it needs.
        string next = path + ".next";
        _dropped.RemoveWhere(dropped => dropped.Value < _done.GetValueOrDefault(dropped.Subject, -1));
        File.WriteAllLines(
            next,
            [
                .. _begun.Select(static pair => LineOf("begin", pair.Key, pair.Value)),
                .. _done.Select(static pair => LineOf("done", pair.Key, pair.Value)),
                .. _dropped.Select(static pair => LineOf("drop", pair.Subject, pair.Value)),
            ]);
        File.Move(next, path, overwrite: true);
        _file = File.OpenHandle(path, FileMode.Open, FileAccess.Write, FileShare.Read);
        _end = RandomAccess.GetLength(_file);
    }

    public void Dispose() => _file.Dispose();

    internal void Begin(string subject, long value) => Write("begin", subject, value);

    internal void Done(string subject, long value) => Write("done", subject, value);

    /// <summary>The operation was given up: its value must never be there.</summary>
    internal void Drop(string subject, long value) => Write("drop", subject, value);

    /// <summary>The last value that was done; -1: none.</summary>
    internal long LastDone(string subject)
    {
        lock (_lock)
        {
            return _done.GetValueOrDefault(subject, -1);
        }
    }

    /// <summary>The last value that was begun; -1: none.</summary>
    internal long LastBegun(string subject)
    {
        lock (_lock)
        {
            return _begun.GetValueOrDefault(subject, -1);
        }
    }

    /// <summary>Whether this value may be there.</summary>
    internal bool Allows(string subject, long value)
    {
        lock (_lock)
        {
            return value >= _done.GetValueOrDefault(subject, -1) && value <= _begun.GetValueOrDefault(subject, -1)
                && !_dropped.Contains((subject, value));
        }
    }

    private static string LineOf(string what, string subject, long value)
        => string.Create(CultureInfo.InvariantCulture, $"{what} {subject} {value}");

    private void Write(string what, string subject, long value)
    {
        byte[] line = Encoding.ASCII.GetBytes(LineOf(what, subject, value) + "\n");
        lock (_lock)
        {
            RandomAccess.Write(_file, line, _end);
            _end += line.Length;
            switch (what)
            {
                case "begin":
                    _begun[subject] = value;
                    break;
                case "done":
                    _done[subject] = value;
                    break;
                default:
                    _dropped.Add((subject, value));
                    break;
            }
        }
    }
}
