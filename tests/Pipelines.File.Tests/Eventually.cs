namespace FilePipelinesTests;

/// <summary>Waits for what comes soon, but not at once.</summary>
internal static class Eventually
{
    public static async Task TrueAsync(Func<Task<bool>> isTrue)
    {
        for (int wait = 1; !await isTrue(); wait *= 2)
        {
            Assert.True(wait < 8192, "It has not come true within 8 s.");
            await Task.Delay(wait, TestContext.Current.CancellationToken);
        }
    }

    public static Task TrueAsync(Func<bool> isTrue) => TrueAsync(() => Task.FromResult(isTrue()));
}
