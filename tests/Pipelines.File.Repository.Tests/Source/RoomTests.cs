namespace FilePipelines.Repository.Tests;

/// <summary>
/// The rooms of the library, which are the folders of src/Pipelines.File, and what each knows: the rooms whose namespaces its files use,
/// and the root, if they name its readers or writers. Each room knows only rooms below it. Options, enums and exceptions of the root are
/// known to all.
/// </summary>
public sealed partial class RoomTests
{
    private const string Root = "Pipelines.File";
    private const string Begin = "<!-- rooms: written by RoomTests -->\n```text\n";
    private const string End = "```\n";

    /// <summary>What a room knows although it is above it. The list may only become shorter.</summary>
    private static readonly string[] s_upwards = [];

    [Fact]
    public void Rooms_KnowOnlyRoomsBelowThem()
    {
        Room[] rooms = ReadRooms();
        string[] upwards = [.. Upwards(rooms)];
        Assert.True(upwards.SequenceEqual(s_upwards),
            "A room knows one above it, or no longer does:\n" + string.Join('\n', upwards.Except(s_upwards)
                .Select(one => $"+ {one} ({string.Join(", ", FilesOf(one, rooms))})")
                .Concat(s_upwards.Except(upwards).Select(one => "- " + one))));
    }

    [Fact]
    public void HowItWorks_ShowsTheRooms()
    {
        Room[] rooms = ReadRooms();
        StringBuilder picture = new();
        foreach (Room room in rooms.OrderByDescending(room => LevelOf(room, rooms, [])).ThenBy(room => room.Name, StringComparer.Ordinal))
        {
            string known = string.Join(", ", room.Knows.Keys.Where(name => !IsUpwards(room.Name, name))
                .OrderByDescending(name => LevelOf(Named(rooms, name), rooms, [])).ThenBy(name => name, StringComparer.Ordinal));
            picture.Append($"{room.Name.PadRight(16)} {known}".TrimEnd()).Append('\n');
        }

        string page = File.ReadAllText(Path.Combine(PageTests.FindRoot()!, "docs", "how-it-works.md")).ReplaceLineEndings("\n");
        int begin = page.IndexOf(Begin, StringComparison.Ordinal) + Begin.Length;
        int end = page.IndexOf(End, begin, StringComparison.Ordinal);
        Assert.True(begin >= Begin.Length && page[begin..end] == picture.ToString(), $"The picture of the rooms is now:\n{picture}");
    }

    /// <summary>What leads from a room back to itself, as "room -> room". The root is on top, whatever it knows.</summary>
    private static IEnumerable<string> Upwards(Room[] rooms)
        => from room in rooms
           from known in room.Knows
           where room.Name != Root && Reaches(Named(rooms, known.Key), room.Name, rooms, [])
           orderby room.Name, known.Key
           select $"{room.Name} -> {known.Key}";

    private static string[] FilesOf(string upwards, Room[] rooms)
        => upwards.Split(" -> ") is [var room, var known] ? Named(rooms, room).Knows[known] : [];

    private static bool IsUpwards(string room, string known) => s_upwards.Any(one => one == $"{room} -> {known}");

    private static bool Reaches(Room room, string name, Room[] rooms, HashSet<string> seen)
        => seen.Add(room.Name) && (room.Name == name || room.Knows.Keys.Any(known => Reaches(Named(rooms, known), name, rooms, seen)));

    private static int LevelOf(Room room, Room[] rooms, HashSet<string> way)
        => !way.Add(room.Name) ? 0 : room.Knows.Keys.Where(known => !IsUpwards(room.Name, known))
            .Select(known => LevelOf(Named(rooms, known), rooms, [.. way]) + 1).DefaultIfEmpty(0).Max();

    private static Room Named(Room[] rooms, string name) => rooms.Single(room => room.Name == name);

    private static Room[] ReadRooms()
    {
        string? root = PageTests.FindRoot();
        Assert.SkipWhen(root is null, "There is no repository around the tests.");
        string folder = Path.Combine(root, "src", "Pipelines.File");
        string[] files =
        [
            .. Directory.EnumerateFiles(folder, "*.cs", SearchOption.AllDirectories)
                .Select(path => Path.GetRelativePath(folder, path).Replace('\\', '/'))
                .Where(path => RoomOf(path) is not ("bin" or "obj")),
        ];
        string[] names = [.. files.Select(RoomOf).Distinct()];
        return
        [
            .. names.Select(name => new Room(name, files.Where(file => RoomOf(file) == name)
                .SelectMany(file => KnownTo(File.ReadAllText(Path.Combine(folder, file)), names)
                    .Select(known => (Room: known, File: Path.GetFileName(file))))
                .Where(known => known.Room != name).GroupBy(known => known.Room)
                .ToDictionary(known => known.Key, known => known.Select(one => one.File).Order(StringComparer.Ordinal).ToArray()))),
        ];
    }

    private static string RoomOf(string path) => path.Contains('/', StringComparison.Ordinal) ? path.Split('/')[0] : Root;

    private static IEnumerable<string> KnownTo(string text, string[] names)
        => Usings().Matches(text).Select(match => match.Groups["room"].Value).Intersect(names)
            .Concat(Comments().Replace(text, "").Split('\n').Any(line => RootTypes().IsMatch(line)) ? [Root] : []);

    [GeneratedRegex(@"^using (static )?Pipelines\.File\.(?<room>\w+)[.;]", RegexOptions.Multiline)]
    private static partial Regex Usings();

    [GeneratedRegex(@"^\s*//.*$", RegexOptions.Multiline)]
    private static partial Regex Comments();

    // A part of the reader that lies in a room is the reader's.
    [GeneratedRegex(@"(?<!partial class )(?<![.\w])(FilePipeReader|FilePipeWriter|SharedFile)\b")]
    private static partial Regex RootTypes();

    /// <summary>A room, and by other rooms those of its files that know them.</summary>
    private sealed record Room(string Name, Dictionary<string, string[]> Knows);
}
