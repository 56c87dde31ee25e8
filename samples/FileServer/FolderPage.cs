using System.Globalization;
using System.Text;
using System.Text.Encodings.Web;

namespace FileServerSample;

/// <summary>The page of one folder.</summary>
internal static class FolderPage
{
    internal static string Render(IReadOnlyList<string> names, string folder, Settings settings)
    {
        StringBuilder page = new();
        string root = Path.GetFileName(settings.Root) is { Length: > 0 } name ? name : settings.Root;
        string title = names.Count == 0 ? root : names[^1];
        page.Append(CultureInfo.InvariantCulture, $"""
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <title>{Html(title)}</title>
            <link rel="icon" href="data:,">
            <link rel="stylesheet" href="/assets/page.css">
            <script src="/assets/page.js" defer></script>
            </head>
            <body>
            <header>
            <nav aria-label="Folders"><a href="/files/">{Html(root)}</a>
            """);
        for (int i = 0; i < names.Count; i++)
        {
            string href = "/files/" + string.Concat(names.Take(i + 1).Select(above => Uri.EscapeDataString(above) + "/"));
            page.Append(CultureInfo.InvariantCulture, $"""<span>/</span><a href="{Html(href)}">{Html(names[i])}</a>""");
        }

        page.Append(CultureInfo.InvariantCulture, $"""
            </nav>
            </header>
            <main>
            <form id="upload" data-max="{settings.MaxUpload}" data-overwrite="{(settings.Overwrite ? "true" : "false")}">
            <label class="button">Upload files<input type="file" multiple></label>
            <span>or drop them here, up to {Size(settings.MaxUpload)} each</span>
            <ul id="uploads" aria-live="polite"></ul>
            </form>
            <table id="files">
            <thead><tr><th>Name</th><th class="number">Size</th><th class="number">Modified (UTC)</th></tr></thead>
            <tbody>
            """);
        int entries = 0;
        foreach (FileSystemInfo entry in ServedFolder.List(folder))
        {
            entries++;
            string suffix = entry is DirectoryInfo ? "/" : "";
            string size = entry is FileInfo file ? Size(file.Length) : "";
            page.Append(CultureInfo.InvariantCulture, $"""
                <tr class="{(entry is FileInfo ? "file" : "folder")}"><td><a href="{Html(Uri.EscapeDataString(entry.Name) + suffix)}">{Html(entry.Name + suffix)}</a></td><td class="number">{size}</td><td class="number">{entry.LastWriteTimeUtc:yyyy-MM-dd HH:mm}</td></tr>
                """);
            page.Append('\n');
        }

        if (entries == 0)
        {
            page.Append("<tr><td colspan=\"3\" class=\"empty\">Nothing here yet.</td></tr>\n");
        }

        page.Append("""
            </tbody>
            </table>
            <section>
            <h2>What the library did <a href="/metrics">/metrics</a></h2>
            <dl id="counters"></dl>
            </section>
            </main>
            </body>
            </html>
            """);
        return page.ToString();
    }

    private static string Html(string text) => HtmlEncoder.Default.Encode(text);

    private static string Size(long bytes)
    {
        string[] units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
        double size = bytes;
        int unit = 0;
        for (; size >= 1024 && unit < units.Length - 1; unit++)
        {
            size /= 1024;
        }

        return string.Create(CultureInfo.InvariantCulture, $"{(unit == 0 || size == Math.Floor(size) ? size.ToString("0", CultureInfo.InvariantCulture) : size.ToString("0.0", CultureInfo.InvariantCulture))} {units[unit]}");
    }
}
