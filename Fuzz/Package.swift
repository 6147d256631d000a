// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that the product's build never pays for it. The rooms are the product's by symbolic link:
// within one package their `package` access holds. Scripts/fuzz builds and runs it with libFuzzer and
// AddressSanitizer.
let package = Package(
    name: "fuzz",
    targets: [
        .systemLibrary(
            name: "CountersignCOpenSSL", path: "Sources/COpenSSL", pkgConfig: "openssl",
            providers: [.apt(["libssl-dev"])]),
        .target(
            name: "CountersignCryptography", dependencies: ["CountersignCOpenSSL"], path: "Sources/Cryptography"),
        .target(
            name: "CountersignHTTP1", path: "Sources/HTTP1"),
        .target(
            name: "CountersignChallenges", dependencies: ["CountersignCryptography"], path: "Sources/Challenges"),
        .target(
            name: "CountersignNTLM", dependencies: ["CountersignChallenges", "CountersignCryptography"],
            path: "Sources/NTLM"),
        .target(
            name: "CountersignSitePolicy", dependencies: ["CountersignChallenges"], path: "Sources/SitePolicy"),
        .executableTarget(
            name: "Fuzz",
            dependencies: ["CountersignHTTP1", "CountersignChallenges", "CountersignNTLM", "CountersignSitePolicy"]),
    ]
)
