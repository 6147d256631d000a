// swift-tools-version: 6.2
import PackageDescription

let nio: [Target.Dependency] = [
    .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
    .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
]
let embedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")

/// A room of the house and the rooms below it: arrows point down only.
func room(_ name: String, _ below: Target.Dependency...) -> Target {
    .target(name: name, dependencies: below)
}

/// A room's tests.
func tests(_ name: String, _ dependencies: Target.Dependency...) -> Target {
    .testTarget(name: name, dependencies: dependencies)
}

let package = Package(
    name: "countersign",
    products: [
        .executable(name: "countersign", targets: ["CountersignCLI"]),
        .library(name: "Countersign", targets: ["Countersign"]),
        .library(name: "CountersignURLSession", targets: ["CountersignURLSession"]),
    ],
    dependencies: [
        // The data path on both sides: event loops, sockets, pipelines.
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        // The commands of `countersign`.
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        // What `serve` tells its operator.
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        // A program that has services runs the proxy as one of them, and shuts it down with the others.
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        // Its headers alone: the library is loaded by the first command that needs it.
        .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CLinux"),
        room("Cryptography", "COpenSSL"),
        room("HTTP1"),
        room("Challenges", "Cryptography"),
        room("NTLM", "Challenges", "Cryptography"),
        room("SitePolicy", "Challenges"),
        room("Certificates", "Cryptography", "COpenSSL"),
        room("Vault", "Challenges", "Cryptography"),
        room(
            "Enrollment", "SitePolicy", "Certificates", "Challenges", "Cryptography", "COpenSSL", "CCurl"),
        .target(name: "TLS", dependencies: ["Certificates", "Challenges", "Cryptography", "COpenSSL"] + nio),
        .target(name: "Upstream", dependencies: ["HTTP1", "TLS", "Certificates", "Challenges"] + nio),
        .target(
            name: "Proxy",
            dependencies: [
                "HTTP1", "Upstream", "TLS", "NTLM", "SitePolicy", "Certificates", "Challenges", "Cryptography",
                "CLinux",
            ] + nio),
        .target(
            name: "Countersign",
            dependencies: [
                "Proxy", "Upstream", "TLS", "NTLM", "Vault", "Enrollment", "SitePolicy", "Certificates", "Challenges",
                "Cryptography", "COpenSSL", logging, lifecycle,
            ] + nio),
        .target(
            name: "CountersignURLSession",
            dependencies: ["Countersign", "Upstream", "HTTP1", "Challenges"] + nio),
        .executableTarget(
            name: "CountersignCLI",
            dependencies: [
                "Countersign", "Proxy", "HTTP1", "NTLM", "TLS", "Vault", "Enrollment", "SitePolicy", "Certificates",
                "Challenges", "Cryptography", "CCurl", "CLinux", argumentParser, logging,
            ] + nio),
        // Test set-up: real servers in temporary folders.
        .target(name: "TestOrigin", path: "Tests/TestOrigin", exclude: ["Servers", "Clients"]),
        .executableTarget(
            name: "DelegatingProxy",
            dependencies: ["Countersign", "Proxy", "TLS", "Vault", "Certificates", logging],
            path: "Tests/DelegatingProxy"),
        tests("CryptographyTests", "Cryptography"),
        tests("HTTP1Tests", "HTTP1", .product(name: "NIOHTTP1", package: "swift-nio"), embedded),
        tests("ChallengesTests", "Challenges", "Cryptography"),
        tests("NTLMTests", "NTLM", "Challenges", "Cryptography"),
        tests("SitePolicyTests", "SitePolicy", "Challenges"),
        tests("CertificatesTests", "Certificates", "Cryptography", "TestOrigin", "COpenSSL"),
        tests("VaultTests", "Vault", "Challenges", "Cryptography"),
        .testTarget(
            name: "TLSTests",
            dependencies: ["TLS", "TestOrigin", "Certificates", "Challenges", "Cryptography", "COpenSSL", embedded]
                + nio),
        tests("EnrollmentTests", "Enrollment", "TestOrigin", "Certificates", "Challenges", "Cryptography"),
        .testTarget(
            name: "UpstreamTests",
            dependencies: ["Upstream", "HTTP1", "TLS", "Certificates", "Challenges", embedded] + nio),
        .testTarget(
            name: "ProxyTests",
            dependencies: [
                "Proxy", "Upstream", "HTTP1", "TLS", "SitePolicy", "Certificates", "Challenges", "Cryptography",
                embedded,
            ] + nio),
        .testTarget(
            name: "CountersignTests",
            dependencies: [
                "Countersign", "CountersignURLSession", "TestOrigin", "Proxy", "TLS", "NTLM", "Vault", "Enrollment",
                "SitePolicy", "Certificates",
                "Challenges", "Cryptography", "COpenSSL", "CCurl", logging, lifecycle,
            ] + nio),
        .testTarget(
            name: "CommandTests",
            dependencies: [
                "CountersignCLI", "Countersign", "TestOrigin", "Vault", "SitePolicy", "Certificates", "Challenges",
                "Cryptography",
            ], exclude: ["Transcripts"]),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                "TestOrigin", "CountersignCLI", "Countersign", "Proxy", "TLS", "Vault", "Certificates", "Cryptography",
                logging,
            ]),
    ]
)
