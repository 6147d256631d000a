// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that the product's build never pays for it. The rooms are the product's by symbolic link:
// within one package their `package` access holds. Scripts/fuzz builds and runs it with libFuzzer and
// AddressSanitizer.
let package = Package(
    name: "fuzz",
    targets: [
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .target(name: "Cryptography", dependencies: ["COpenSSL"]),
        .target(name: "HTTP1"),
        .target(name: "Challenges", dependencies: ["Cryptography"]),
        .target(name: "NTLM", dependencies: ["Challenges", "Cryptography"]),
        .target(name: "SitePolicy", dependencies: ["Challenges"]),
        .executableTarget(name: "Fuzz", dependencies: ["HTTP1", "Challenges", "NTLM", "SitePolicy"]),
    ]
)
