using Microsoft.AspNetCore.Mvc.Filters;
using Microsoft.AspNetCore.Mvc.ModelBinding;

namespace Pipelines.File.AspNetCore;

/// <summary>
/// Keeps the model binding of a controller from reading the body as a form, so that the action can save it. Without it, MVC reads every
/// form before the action runs, and nothing is left of the body. Parameters of the action come from the route, the query or a header then.
/// </summary>
/// <example>
/// <code>
/// [HttpPost, DisableFormValueModelBinding]
/// public async Task Upload()
/// {
///     await foreach (MultipartSection section in Request.ReadSectionsAsync())
///     {
///         await section.SaveSectionAsync(Path.Combine("uploads", $"{Guid.NewGuid():N}"));
///     }
/// }
/// </code>
/// </example>
[AttributeUsage(AttributeTargets.Class | AttributeTargets.Method)]
public sealed class DisableFormValueModelBindingAttribute : Attribute, IResourceFilter
{
    /// <inheritdoc/>
    public void OnResourceExecuting(ResourceExecutingContext context)
    {
        ArgumentNullException.ThrowIfNull(context);
        context.ValueProviderFactories.RemoveType<FormValueProviderFactory>();
        context.ValueProviderFactories.RemoveType<FormFileValueProviderFactory>();
        context.ValueProviderFactories.RemoveType<JQueryFormValueProviderFactory>();
    }

    /// <inheritdoc/>
    public void OnResourceExecuted(ResourceExecutedContext context)
    {
    }
}
