using Microsoft.Extensions.Options;

namespace Pipelines.File.AspNetCore;

/// <summary>Has options check themselves, by what they throw.</summary>
internal sealed class OptionsCheck<T>(string name, Action<T> validate) : IValidateOptions<T>
    where T : class
{
    public ValidateOptionsResult Validate(string? optionsName, T options)
    {
        if (optionsName != name)
        {
            return ValidateOptionsResult.Skip;
        }

        try
        {
            validate(options);
            return ValidateOptionsResult.Success;
        }
        catch (ArgumentException e)
        {
            return ValidateOptionsResult.Fail(e.Message);
        }
    }
}
