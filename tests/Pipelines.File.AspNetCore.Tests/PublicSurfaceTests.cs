using System.Globalization;
using System.Reflection;
using System.Runtime.CompilerServices;

namespace FileSendingTests;

/// <summary>
/// Every public type and member of each package, a line each, against its file in tests/PublicSurface: whoever changes it sees the line in
/// the diff.
/// </summary>
public sealed class PublicSurfaceTests
{
    private const BindingFlags All = BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.Instance | BindingFlags.Static
        | BindingFlags.DeclaredOnly;
    private static readonly NullabilityInfoContext s_nullability = new();

    public static TheoryData<string> Names => [.. Packages.All.Select(package => package.GetName().Name!)];

    [Theory]
    [MemberData(nameof(Names))]
    public void PublicSurface_OfThePackage_IsTheOneWrittenDown(string name)
    {
        string folder = Path.Combine(AppContext.BaseDirectory, "PublicSurface");
        string expected = Path.Combine(folder, $"{name}.txt");
        string actual = Path.Combine(folder, $"{name}.actual.txt");
        string[] lines = [.. Packages.All.Single(package => package.GetName().Name == name).GetExportedTypes()
            .Where(type => !IsGenerated(type)).SelectMany(Describe).Order(StringComparer.Ordinal)];
        File.WriteAllLines(actual, lines);

        string[] written = File.Exists(expected) ? File.ReadAllLines(expected) : [];
        string difference = string.Join(
            '\n', written.Except(lines).Select(line => "- " + line).Concat(lines.Except(written).Select(line => "+ " + line)));
        Assert.True(written.SequenceEqual(lines),
            $"The public surface has changed:\n{difference}\nWhere that is meant, copy {actual} over tests/PublicSurface/{name}.txt.");
    }

    // The compiler's own types for extension members have names that no program can write.
    private static bool IsGenerated(MemberInfo member) => member.Name.Contains('<') || member.IsDefined(typeof(CompilerGeneratedAttribute))
        || (member.DeclaringType is { } type && IsGenerated(type));

    private static IEnumerable<string> Describe(Type type)
    {
        string kind = type switch
        {
            { IsEnum: true } => "enum",
            { IsValueType: true } => type.IsDefined(typeof(IsReadOnlyAttribute)) ? "readonly struct" : "struct",
            { IsInterface: true } => "interface",
            { IsAbstract: true, IsSealed: true } => "static class",
            { IsSealed: true } => "sealed class",
            _ => "class",
        };
        // What a base type implements is said by the base type.
        IEnumerable<Type> bases = type.GetInterfaces().Except(type.BaseType?.GetInterfaces() ?? []);
        bases = type.BaseType is { } parent && parent != typeof(object) && parent != typeof(ValueType) && parent != typeof(Enum)
            ? bases.Prepend(parent) : bases;
        string[] names = type.IsEnum ? [] : [.. bases.Where(one => one.IsVisible).Select(Name)];
        IEnumerable<string> ordered = names.Take(1).Concat(names.Skip(1).Order(StringComparer.Ordinal));
        yield return $"{type.FullName}: {kind}{(names.Length > 0 ? " : " + string.Join(", ", ordered) : "")}";
        foreach (MemberInfo member in type.GetMembers(All))
        {
            // An enum's one instance field is its number; a struct's record members are the compiler's.
            if (Describe(member) is { } text && member is not FieldInfo { IsSpecialName: true })
            {
                yield return $"{type.FullName}.{text}";
            }
        }
    }

    private static string? Describe(MemberInfo member) => member switch
    {
        FieldInfo { IsLiteral: true } constant when IsVisible(constant)
            => $"{constant.Name} = {string.Create(CultureInfo.InvariantCulture, $"{constant.GetRawConstantValue()}")}",
        FieldInfo field when IsVisible(field) => $"{field.Name}: {Scope(field.IsStatic)}{Name(s_nullability.Create(field))}",
        PropertyInfo property when property.GetAccessors(nonPublic: true).Where(IsVisible).ToArray() is { Length: > 0 } accessors
            => $"{property.Name} {{ {string.Join(' ', accessors.Select(AccessorName))} }}: "
                + $"{Scope(accessors[0].IsStatic)}{Name(s_nullability.Create(property))}",
        EventInfo one when one.AddMethod is { } add && IsVisible(add) => $"{one.Name}: event {Name(one.EventHandlerType!)}",
        ConstructorInfo constructor when IsVisible(constructor) => $"new({Parameters(constructor)})",
        MethodInfo method when IsVisible(method) && (!method.IsSpecialName || method.Name.StartsWith("op_", StringComparison.Ordinal))
            => $"{method.Name}{GenericParameters(method)}({Parameters(method)}): "
                + $"{Scope(method.IsStatic)}{Name(s_nullability.Create(method.ReturnParameter))}",
        _ => null,
    };

    private static bool IsVisible(MethodBase method) => method.IsPublic || method.IsFamily || method.IsFamilyOrAssembly;

    private static bool IsVisible(FieldInfo field) => field.IsPublic || field.IsFamily || field.IsFamilyOrAssembly;

    private static string AccessorName(MethodInfo accessor)
        => accessor.ReturnType != typeof(void) ? "get;"
            : accessor.ReturnParameter.GetRequiredCustomModifiers().Contains(typeof(IsExternalInit)) ? "init;" : "set;";

    private static string Scope(bool isStatic) => isStatic ? "static " : string.Empty;

    private static string GenericParameters(MethodInfo method)
        => method.IsGenericMethodDefinition
            ? $"<{string.Join(", ", method.GetGenericArguments().Select(argument => argument.Name))}>" : string.Empty;

    private static string Parameters(MethodBase method) => string.Join(", ", method.GetParameters().Select((parameter, index) =>
    {
        string how = parameter.IsOut ? "out " : parameter.IsIn ? "in " : parameter.ParameterType.IsByRef ? "ref " : string.Empty;
        string self = index == 0 && method.IsDefined(typeof(ExtensionAttribute)) ? "this " : string.Empty;
        string value = !parameter.HasDefaultValue
            ? string.Empty
            : string.Create(CultureInfo.InvariantCulture, $" = {parameter.DefaultValue ?? "default"}");
        return $"{self}{how}{Name(s_nullability.Create(parameter))} {parameter.Name}{value}";
    }));

    private static string Name(NullabilityInfo info)
    {
        Type type = info.Type.IsByRef ? info.Type.GetElementType()! : info.Type;
        string name = type.IsGenericType && Nullable.GetUnderlyingType(type) is null && info.GenericTypeArguments.Length > 0
            ? $"{type.Name.Split('`')[0]}<{string.Join(", ", info.GenericTypeArguments.Select(Name))}>"
            : Name(type);
        return type.IsValueType || info.ReadState != NullabilityState.Nullable ? name : name + "?";
    }

    private static string Name(Type type)
    {
        if (Nullable.GetUnderlyingType(type) is { } value)
        {
            return Name(value) + "?";
        }

        return type.IsGenericType ? $"{type.Name.Split('`')[0]}<{string.Join(", ", type.GetGenericArguments().Select(Name))}>" : type.Name;
    }
}
