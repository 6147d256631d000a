// swift-tools-version: 6.2
import PackageDescription

let nio: [Target.Dependency] = [
    .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
    .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
]
let embedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")

/// The data path's benchmarks call internal declarations of the modules that have this setting.
let testable: [SwiftSetting] = [.unsafeFlags(["-enable-testing"])]

// The product's modules appear here through symbolic links: their `package` declarations are visible only within one
// package. Being a separate package, this one adds nothing to the product's build.

/// The product's module in `Sources/FOLDER`, a symbolic link, under the name that it has in the product's package.
func module(
    _ folder: String, _ modules: [String] = [], _ products: [Target.Dependency] = [], settings: [SwiftSetting] = []
) -> Target {
    .target(
        name: prefixed(folder), dependencies: dependencies(modules, products), path: "Sources/\(folder)",
        swiftSettings: settings)
}

func dependencies(_ modules: [String], _ products: [Target.Dependency]) -> [Target.Dependency] {
    modules.map { .byName(name: prefixed($0)) } + products
}

func prefixed(_ folder: String) -> String { "Countersign\(folder)" }

let package = Package(
    name: "benchmarks",
    products: [.executable(name: "micro", targets: ["Micro"])],
    dependencies: [
        // An exact version, because the thresholds include swift-nio's allocations.
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2")
    ],
    targets: [
        .systemLibrary(
            name: prefixed("COpenSSL"), path: "Sources/COpenSSL", pkgConfig: "openssl",
            providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: prefixed("CGSSAPI"), path: "Sources/CGSSAPI", providers: [.apt(["libkrb5-dev"])]),
        .systemLibrary(name: prefixed("CLinux"), path: "Sources/CLinux"),
        .systemLibrary(
            name: prefixed("CNGHTTP2"), path: "Sources/CNGHTTP2", pkgConfig: "libnghttp2",
            providers: [.apt(["libnghttp2-dev"])]),
        module("Cryptography", ["COpenSSL"]),
        module("Addresses", ["Cryptography"]),
        module("AWSSignature", ["Cryptography"]),
        module("HTTP1"),
        module("HTTP2", ["HTTP1", "CNGHTTP2"]),
        module("Loopback"),
        module("Cookies", ["Cryptography"]),
        module("JSON", ["Cryptography"]),
        module("Events", ["JSON", "Cryptography"]),
        module("Audit", ["JSON", "Cryptography", "CLinux"]),
        module("Challenges", ["JSON", "Addresses", "Cryptography"]),
        module("SPNEGO", ["Cryptography"]),
        module("NTLM", ["SPNEGO", "Challenges", "Cryptography"]),
        module("Negotiate", ["SPNEGO", "Challenges", "Cryptography", "CGSSAPI"]),
        module("SitePolicy", ["Challenges", "Addresses", "Cryptography"]),
        module("Parents", ["HTTP1", "Challenges", "Addresses", "Cryptography"]),
        module("Certificates", ["Cryptography", "COpenSSL"]),
        module("Vault", ["Cookies", "Challenges", "Cryptography"]),
        module("TLS", ["Certificates", "Challenges", "Cryptography", "COpenSSL"]),
        module(
            "Answering",
            [
                "TLS", "NTLM", "Negotiate", "SitePolicy", "Certificates", "Cookies", "Challenges", "Addresses",
                "Cryptography",
            ], settings: testable),
        module("ChannelTLS", ["TLS", "Certificates", "Challenges", "COpenSSL"], nio),
        module(
            "Upstream",
            [
                "Parents", "HTTP2", "HTTP1", "ChannelTLS", "TLS", "Certificates", "Challenges", "Addresses",
                "Cryptography",
            ], nio, settings: testable),
        module(
            "Proxy",
            [
                "Answering", "AWSSignature", "Parents", "Negotiate", "HTTP2", "HTTP1", "Loopback", "Upstream",
                "ChannelTLS", "TLS", "SitePolicy", "Certificates", "Cookies", "Challenges", "Events", "JSON",
                "Addresses", "Cryptography", "CLinux",
            ], nio, settings: testable),
        // Counts allocations: it defines malloc and its relatives ahead of the C library's.
        .target(name: "CMeter"),
        .executableTarget(
            name: "Micro",
            dependencies: ["CMeter"]
                + dependencies(
                    [
                        "HTTP1", "Events", "Audit", "Challenges", "NTLM", "SitePolicy", "Certificates", "Vault",
                        "Addresses", "Cryptography", "ChannelTLS",
                        "TLS", "Answering", "Upstream", "Proxy",
                    ], nio + [embedded])),
    ]
)
