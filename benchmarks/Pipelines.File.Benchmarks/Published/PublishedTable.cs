namespace FilePipelinesBenchmarks.Published;

/// <summary>Reads the data files of published figures: comments, a heading, and rows without quotes.</summary>
internal static class PublishedTable
{
    internal static IEnumerable<string[]> Load(string name)
    {
        using StreamReader reader = new(typeof(PublishedTable).Assembly.GetManifestResourceStream(name)!);
        bool isAfterHeading = false;
        while (reader.ReadLine() is { } line)
        {
            if (line.StartsWith('#'))
            {
                continue;
            }

            if (isAfterHeading)
            {
                yield return line.Split(',');
            }

            isAfterHeading = true;
        }
    }
}
