using System.Globalization;
using System.Text;
using System.Text.Encodings.Web;

namespace FileServerSample;

/// <summary>The page of one folder.</summary>
internal static class FolderPage
{
    /// <summary>Names of one page.</summary>
    internal const int PageSize = 200;

    /// <param name="names">The folder's, below the root.</param>
    /// <param name="folder">Its path.</param>
    /// <param name="settings">What may be uploaded.</param>
    /// <param name="number">Which part of its names is shown, from 1 on.</param>
    internal static string Render(IReadOnlyList<string> names, string folder, Settings settings, int number)
    {
        List<FolderEntry> entries = ServedFolder.List(
            folder, (int)Math.Min(int.MaxValue, (number - 1L) * PageSize), PageSize, out int count);
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
            <span>or drop them anywhere, up to {Size(settings.MaxUpload)} each</span>
            <p id="message" role="alert"></p>
            <ul id="uploads" aria-live="polite"></ul>
            </form>
            <div id="files">
            <table>
            <thead><tr><th>Name</th><th class="number">Size</th><th class="number">Modified (UTC)</th></tr></thead>
            <tbody>
            """);
        foreach (FolderEntry entry in entries)
        {
            string suffix = entry.Length is null ? "/" : "";
            string size = entry.Length is long length ? Size(length) : "";
            page.Append(CultureInfo.InvariantCulture, $"""
                <tr class="{(entry.Length is null ? "folder" : "file")}"><td><a href="{Html(Uri.EscapeDataString(entry.Name) + suffix)}">{Html(entry.Name + suffix)}</a></td><td class="number">{size}</td><td class="number">{entry.Modified:yyyy-MM-dd HH:mm}</td></tr>
                """);
            page.Append('\n');
        }

        if (entries.Count == 0)
        {
            page.Append("<tr><td colspan=\"3\" class=\"empty\">Nothing here yet.</td></tr>\n");
        }

        page.Append("</tbody>\n</table>\n");
        int pages = (count + PageSize - 1) / PageSize;
        if (pages > 1)
        {
            page.Append(CultureInfo.InvariantCulture, $"""
                <nav class="pages" aria-label="Pages">{PageLink(number - 1, pages, "Previous")}<span>{number} of {pages}, {count} names</span>{PageLink(number + 1, pages, "Next")}</nav>

                """);
        }

        page.Append("""
            </div>
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

    private static string PageLink(int number, int pages, string text)
        => number >= 1 && number <= pages ? string.Create(CultureInfo.InvariantCulture, $"""<a href="?page={number}">{text}</a>""") : "";

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

        return size.ToString(unit == 0 || size == Math.Floor(size) ? "0" : "0.0", CultureInfo.InvariantCulture) + " " + units[unit];
    }
}
