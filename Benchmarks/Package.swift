// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that the product's build never pays for it. The rooms are the product's by symbolic link:
// within one package their `package` access holds.
let package = Package(
    name: "benchmarks",
    products: [.executable(name: "micro", targets: ["Micro"])],
    targets: [
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .target(name: "Cryptography", dependencies: ["COpenSSL"]),
        .target(name: "HTTP1"),
        .target(name: "Challenges", dependencies: ["Cryptography"]),
        .target(name: "NTLM", dependencies: ["Challenges", "Cryptography"]),
        .target(name: "SitePolicy", dependencies: ["Challenges"]),
        .target(name: "Certificates", dependencies: ["Cryptography", "COpenSSL"]),
        .target(name: "Vault", dependencies: ["Challenges", "Cryptography"]),
        // Counts what the process allocates: its malloc stands before the C library's.
        .target(name: "CMeter"),
        .executableTarget(
            name: "Micro",
            dependencies: [
                "CMeter", "HTTP1", "Challenges", "NTLM", "SitePolicy", "Certificates", "Vault", "Cryptography",
            ]),
    ]
)
