namespace FilePipelines.Devices.Tests;

/// <summary>How many disks have lost what was synced, and how many files of each kind.</summary>
internal sealed class Losses
{
    private readonly SortedDictionary<string, int> _files = [];

    internal int Disks { get; private set; }

    /// <summary>Counts one disk, with the names of the files that it has lost bytes of.</summary>
    internal void Add(IReadOnlyCollection<string> names)
    {
        Disks += Math.Sign(names.Count);
        foreach (string name in names)
        {
            _files[name] = _files.GetValueOrDefault(name) + 1;
        }
    }

    public override string ToString()
        => $"{Disks} disks lost what was synced: {string.Join(", ", _files.Select(static file => $"{file.Key} {file.Value}"))}";
}
