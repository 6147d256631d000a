// swift-tools-version: 6.2
import PackageDescription

let nio: [Target.Dependency] = [
    .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
    .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
]
/// What the data path is driven by is internal to its rooms.
let testable: [SwiftSetting] = [.unsafeFlags(["-enable-testing"])]

// A package of its own, so that the product's build never pays for it. The rooms are the product's by symbolic link:
// within one package their `package` access holds.
let package = Package(
    name: "benchmarks",
    products: [.executable(name: "micro", targets: ["Micro"])],
    dependencies: [
        // Pinned, as what it allocates is held too.
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2")
    ],
    targets: [
        .systemLibrary(
            name: "CountersignCOpenSSL", path: "Sources/COpenSSL", pkgConfig: "openssl",
            providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CountersignCLinux", path: "Sources/CLinux"),
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
        .target(
            name: "CountersignCertificates", dependencies: ["CountersignCryptography", "CountersignCOpenSSL"],
            path: "Sources/Certificates"),
        .target(
            name: "CountersignVault", dependencies: ["CountersignChallenges", "CountersignCryptography"],
            path: "Sources/Vault"),
        .target(
            name: "CountersignTLS",
            dependencies: [
                "CountersignCertificates", "CountersignChallenges", "CountersignCryptography", "CountersignCOpenSSL",
            ] + nio, path: "Sources/TLS"),
        .target(
            name: "CountersignUpstream",
            dependencies: ["CountersignHTTP1", "CountersignTLS", "CountersignCertificates", "CountersignChallenges"]
                + nio, path: "Sources/Upstream",
            swiftSettings: testable),
        .target(
            name: "CountersignProxy",
            dependencies: [
                "CountersignHTTP1", "CountersignUpstream", "CountersignTLS", "CountersignNTLM", "CountersignSitePolicy",
                "CountersignCertificates", "CountersignChallenges", "CountersignCryptography",
                "CountersignCLinux",
            ] + nio, path: "Sources/Proxy",
            swiftSettings: testable),
        // Counts what the process allocates: its malloc stands before the C library's.
        .target(name: "CMeter"),
        .executableTarget(
            name: "Micro",
            dependencies: [
                "CMeter", "CountersignHTTP1", "CountersignChallenges", "CountersignNTLM", "CountersignSitePolicy",
                "CountersignCertificates", "CountersignVault", "CountersignCryptography", "CountersignTLS",
                "CountersignUpstream", "CountersignProxy", .product(name: "NIOEmbedded", package: "swift-nio"),
            ] + nio),
    ]
)
