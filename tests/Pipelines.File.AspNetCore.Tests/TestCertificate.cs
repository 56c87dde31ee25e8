using System.Security.Cryptography.X509Certificates;

namespace FilePipelines.AspNetCore.Tests;

/// <summary>A certificate for 127.0.0.1, made for this run of the tests.</summary>
public static class TestCertificate
{
    public static X509Certificate2 Instance { get; } = Make();

    private static X509Certificate2 Make()
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new("CN=127.0.0.1", key, HashAlgorithmName.SHA256);
        SubjectAlternativeNameBuilder names = new();
        names.AddIpAddress(IPAddress.Loopback);
        request.CertificateExtensions.Add(names.Build());
        using X509Certificate2 made = request.CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(1));

        // TLS on Windows needs a key that is stored.
        return X509CertificateLoader.LoadPkcs12(made.Export(X509ContentType.Pkcs12), null);
    }
}
