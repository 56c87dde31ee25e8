using System.Xml.Linq;
using Microsoft.CodeAnalysis;
using Microsoft.CodeAnalysis.CSharp;

// PublicDocumentation ASSEMBLY XML    takes out of the documentation file what users of the assembly cannot name: the compiler documents
//                                     internal members as well
if (args.Length != 2)
{
    Console.Error.WriteLine("usage: PublicDocumentation ASSEMBLY XML");
    return 2;
}

CSharpCompilation compilation = CSharpCompilation.Create(
    "reader",
    references: [MetadataReference.CreateFromFile(args[0])],
    options: new CSharpCompilationOptions(OutputKind.DynamicallyLinkedLibrary).WithMetadataImportOptions(MetadataImportOptions.All));
IAssemblySymbol assembly = compilation.SourceModule.ReferencedAssemblySymbols.Single();
HashSet<string> hidden = [];
foreach (INamespaceOrTypeSymbol member in assembly.GlobalNamespace.GetMembers())
{
    Look(member, isVisible: true);
}

XDocument documentation = XDocument.Load(args[1], LoadOptions.PreserveWhitespace);
foreach (XElement member in documentation.Descendants("member").ToList())
{
    if (hidden.Contains((string)member.Attribute("name")!))
    {
        // With the line break in front of it.
        (member.PreviousNode as XText)?.Remove();
        member.Remove();
    }
}

documentation.Save(args[1], SaveOptions.DisableFormatting);
return 0;

void Look(ISymbol symbol, bool isVisible)
{
    isVisible &= symbol is INamespaceSymbol
        || symbol.DeclaredAccessibility is Accessibility.Public or Accessibility.Protected or Accessibility.ProtectedOrInternal;
    if (!isVisible && symbol.GetDocumentationCommentId() is { } id)
    {
        hidden.Add(id);
    }

    if (symbol is INamespaceOrTypeSymbol parent)
    {
        foreach (ISymbol member in parent.GetMembers())
        {
            Look(member, isVisible);
        }
    }
}
