using System.Runtime.CompilerServices;

namespace FilePipelines.Tests;

/// <summary>Waits for what comes soon, but not at once.</summary>
internal static class Eventually
{
    /// <summary>
    /// How long a test waits for what must come: far longer than it takes, on a machine that does many other things, too.
    /// </summary>
    public static readonly TimeSpan Limit = TimeSpan.FromMinutes(3);

    public static async Task TrueAsync(Func<Task<bool>> isTrue, [CallerArgumentExpression(nameof(isTrue))] string what = "")
    {
        // Longer and longer, as what does not come at once mostly takes some time, but never so long that the wait is what the test takes.
        long begun = Environment.TickCount64;
        for (int wait = 1; !await isTrue(); wait = Math.Min(wait * 2, 64))
        {
            Assert.True(Environment.TickCount64 - begun < Limit.TotalMilliseconds,
                $"It has not come true within {Limit.TotalSeconds} s: {what}");
            await Task.Delay(wait, TestContext.Current.CancellationToken);
        }
    }

    public static Task TrueAsync(Func<bool> isTrue, [CallerArgumentExpression(nameof(isTrue))] string what = "")
        => TrueAsync(() => Task.FromResult(isTrue()), what);

    /// <summary>Until nobody has the file open.</summary>
    public static Task FreeAsync(string path) => TrueAsync(() => IsFree(path));

    /// <summary>Renames over a file that a follower may have open just now. Windows refuses that, so a rotation tries it again.</summary>
    public static Task MovedOverAsync(string path, string target) => TrueAsync(() =>
    {
        try
        {
            File.Move(path, target, overwrite: true);
            return true;
        }
        catch (UnauthorizedAccessException) when (OperatingSystem.IsWindows())
        {
            return false;
        }
    });

    private static bool IsFree(string path)
    {
        try
        {
            File.OpenHandle(path, FileMode.Open, FileAccess.ReadWrite, FileShare.None).Dispose();
            return true;
        }
        catch (IOException)
        {
            return false;
        }
    }
}
