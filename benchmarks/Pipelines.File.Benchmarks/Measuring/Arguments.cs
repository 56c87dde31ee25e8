namespace FilePipelines.Benchmarks;

/// <summary>What stands behind a command: flags, and options with a value. What nobody asked for is an error.</summary>
internal sealed class Arguments(IEnumerable<string> arguments, string usage)
{
    private readonly List<string> _rest = [.. arguments];
    private bool _isWrong;

    internal bool Flag(string name) => _rest.Remove(name);

    internal string? Text(string name)
    {
        int index = _rest.IndexOf(name);
        if (index < 0 || index + 1 == _rest.Count)
        {
            return null;
        }

        string value = _rest[index + 1];
        _rest.RemoveRange(index, 2);
        return value;
    }

    /// <summary>A number of at least 1.</summary>
    internal int Number(string name, int otherwise)
    {
        string? text = Text(name);
        int number = otherwise;
        _isWrong |= text is not null && !(int.TryParse(text, NumberStyles.None, CultureInfo.InvariantCulture, out number) && number > 0);
        return number;
    }

    /// <summary>Says what is wrong if the caller says so, or if something is left over or was no number.</summary>
    internal bool AreWrong(bool also = false)
    {
        if (also || _isWrong || _rest.Count > 0)
        {
            Console.Error.WriteLine($"This is not understood{(_rest.Count > 0 ? $": '{_rest[0]}'" : string.Empty)}. It is: {usage}");
            return true;
        }

        return false;
    }
}
