using System.Diagnostics.CodeAnalysis;
using Microsoft.AspNetCore.Mvc;
using Microsoft.AspNetCore.WebUtilities;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>A controller that takes uploads, with the attribute and without it.</summary>
[SuppressMessage("Design", "CA1515:Consider making public types internal", Justification = "A controller is public.")]
public sealed class UploadsController : ControllerBase
{
    [HttpPut("mvc-save/without/{name}")]
    public Task<IActionResult> SaveWithout(string name) => SaveAsync(name);

    [HttpPut("mvc-save/with/{name}")]
    [DisableFormValueModelBinding]
    public Task<IActionResult> SaveWith(string name) => SaveAsync(name);

    [HttpPost("mvc-form/without/{name}")]
    public Task<IActionResult> FormWithout(string name) => SaveSectionsAsync(name);

    [HttpPost("mvc-form/with/{name}")]
    [DisableFormValueModelBinding]
    public Task<IActionResult> FormWith(string name) => SaveSectionsAsync(name);

    private async Task<IActionResult> SaveAsync(string name)
    {
        try
        {
            SavedFile saved = await Request.SaveBodyAsync(PathOf(name));
            return Content(saved.Length.ToString(CultureInfo.InvariantCulture));
        }
        catch (InvalidOperationException e)
        {
            return Content(e.Message);
        }
    }

    private async Task<IActionResult> SaveSectionsAsync(string name)
    {
        try
        {
            long length = 0;
            await foreach (MultipartSection section in Request.ReadSectionsAsync())
            {
                length += (await section.SaveSectionAsync(PathOf(name))).Length;
            }

            return Content(length.ToString(CultureInfo.InvariantCulture));
        }
        catch (InvalidOperationException e)
        {
            return Content(e.Message);
        }
    }

    private string PathOf(string name) => Path.Combine(Request.Headers["X-Root"].ToString(), name);
}
