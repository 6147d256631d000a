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
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CLinux"),
        .target(name: "Cryptography", dependencies: ["COpenSSL"]),
        .target(name: "HTTP1"),
        .target(name: "Challenges", dependencies: ["Cryptography"]),
        .target(name: "NTLM", dependencies: ["Challenges", "Cryptography"]),
        .target(name: "SitePolicy", dependencies: ["Challenges"]),
        .target(name: "Certificates", dependencies: ["Cryptography", "COpenSSL"]),
        .target(name: "Vault", dependencies: ["Challenges", "Cryptography"]),
        .target(name: "TLS", dependencies: ["Certificates", "Challenges", "Cryptography", "COpenSSL"] + nio),
        .target(
            name: "Upstream", dependencies: ["HTTP1", "TLS", "Certificates", "Challenges"] + nio,
            swiftSettings: testable),
        .target(
            name: "Proxy",
            dependencies: [
                "HTTP1", "Upstream", "TLS", "NTLM", "SitePolicy", "Certificates", "Challenges", "Cryptography",
                "CLinux",
            ] + nio,
            swiftSettings: testable),
        // Counts what the process allocates: its malloc stands before the C library's.
        .target(name: "CMeter"),
        .executableTarget(
            name: "Micro",
            dependencies: [
                "CMeter", "HTTP1", "Challenges", "NTLM", "SitePolicy", "Certificates", "Vault", "Cryptography", "TLS",
                "Upstream", "Proxy", .product(name: "NIOEmbedded", package: "swift-nio"),
            ] + nio),
    ]
)
