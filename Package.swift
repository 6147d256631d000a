// swift-tools-version: 6.2
import PackageDescription

let nio: [Target.Dependency] = [
    .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
    .product(name: "NIOConcurrencyHelpers", package: "swift-nio"),
]
let embedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let coreMetrics: Target.Dependency = .product(name: "CoreMetrics", package: "swift-metrics")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")

// A target name must be unique in a whole package graph, and an app may have a target named `Proxy` or `TLS`. Ours
// therefore begin with `Countersign`; the folders in Sources and Tests have the short names.

/// The module in `Sources/FOLDER`, with the modules that it imports. They are all above it in the list of targets.
func module(
    _ folder: String, _ modules: [String] = [], _ products: [Target.Dependency] = [], settings: [SwiftSetting] = []
) -> Target {
    .target(
        name: prefixed(folder), dependencies: dependencies(modules, products), path: "Sources/\(folder)",
        swiftSettings: settings)
}

/// For the modules that apps import: an import is internal unless it says `public` or `package` (SE-0409), so that an
/// app needs only the modules whose types the public interface names.
let internalImports: [SwiftSetting] = [.enableUpcomingFeature("InternalImportsByDefault")]

/// The tests in `Tests/FOLDER`.
func tests(
    _ folder: String, _ modules: [String], _ products: [Target.Dependency] = [], exclude: [String] = []
) -> Target {
    .testTarget(
        name: prefixed(folder), dependencies: dependencies(modules, products), path: "Tests/\(folder)", exclude: exclude
    )
}

func dependencies(_ modules: [String], _ products: [Target.Dependency]) -> [Target.Dependency] {
    modules.map { .byName(name: prefixed($0)) } + products
}

func prefixed(_ folder: String) -> String { folder.hasPrefix("Countersign") ? folder : "Countersign\(folder)" }

let package = Package(
    name: "countersign",
    products: [
        .executable(name: "countersign", targets: ["CountersignCLI"]),
        // Answers challenges, signs people in and manages the home. Needs no SwiftNIO, which takes a third of the time
        // of a small app's first build.
        .library(name: "Countersign", targets: ["Countersign"]),
        // The parts that need SwiftNIO: the proxy, TLS on a channel, and the proxy of sign-in windows.
        .library(name: "CountersignNIO", targets: ["CountersignNIO"]),
        // The proxy as a service of a group. Service Lifecycle would be a twentieth of the executable, which has no
        // use for it.
        .library(name: "CountersignServiceLifecycle", targets: ["CountersignServiceLifecycle"]),
        .library(name: "CountersignURLSession", targets: ["CountersignURLSession"]),
        // A provider and a site for the tests of apps, which must not need the real ones.
        .library(name: "CountersignTesting", targets: ["CountersignTesting"]),
    ],
    dependencies: [
        // The data path on both sides: event loops, sockets, pipelines.
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        // The commands of `countersign`.
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        // The log of `serve`.
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        // The metrics of `serve`, under the interface that the backends of other programs have.
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        // Lets a program run the proxy as one of its services and shut it down together with them.
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .systemLibrary(
            name: "CountersignCOpenSSL", path: "Sources/COpenSSL", pkgConfig: "openssl",
            providers: [.apt(["libssl-dev"])]),
        // Only the headers: the first command that needs libcurl loads it at run time.
        .systemLibrary(
            name: "CountersignCCurl", path: "Sources/CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        // Only the headers: the first challenge that Kerberos could answer loads the library.
        .systemLibrary(name: "CountersignCGSSAPI", path: "Sources/CGSSAPI", providers: [.apt(["libkrb5-dev"])]),
        // HTTP/2's frames, HPACK and flow control. swift-nio-http2 keeps field values as strings, which changes octets
        // beyond ASCII, and needs several times the processor time per request.
        .systemLibrary(
            name: "CountersignCNGHTTP2", path: "Sources/CNGHTTP2", pkgConfig: "libnghttp2",
            providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "CountersignCLinux", path: "Sources/CLinux"),
        // No headers either: the first QR code loads libqrencode, if it is installed.
        .systemLibrary(name: "CountersignCQRCode", path: "Sources/CQRCode"),
        // The first connection to the session bus loads libdbus-1, if it is installed.
        .systemLibrary(name: "CountersignCDBus", path: "Sources/CDBus"),
        // The process that runs proxy auto-configuration scripts loads one of these, if it is installed.
        .systemLibrary(name: "CountersignCDuktape", path: "Sources/CDuktape"),
        .systemLibrary(name: "CountersignCJavaScriptCore", path: "Sources/CJavaScriptCore"),
        module("Cryptography", ["COpenSSL"]),
        module("Addresses", ["Cryptography"]),
        module("HTTP1"),
        module("HTTP2", ["HTTP1", "CNGHTTP2"]),
        module("Loopback"),
        module("JSON", ["Cryptography"]),
        // What the proxy has done, for those who watch.
        module("Events", ["JSON", "Cryptography"]),
        // A backend of swift-metrics that writes the text format of Prometheus.
        module("Prometheus", [], [coreMetrics]),
        // The chained record of credentials' uses.
        module("Audit", ["JSON", "Cryptography", "CLinux"]),
        // The page in the browser, with HTTP for it and for the metrics.
        module("Page", ["Events", "JSON", "Cryptography"]),
        // Signature Version 4 of Amazon Web Services. Its chunks and canonical forms are no part of an HTTP challenge.
        module("AWSSignature", ["Cryptography"]),
        module("Challenges", ["JSON", "Addresses", "Cryptography"]),
        module("SPNEGO", ["Cryptography"]),
        module("NTLM", ["SPNEGO", "Challenges", "Cryptography"]),
        module("Negotiate", ["SPNEGO", "Challenges", "Cryptography", "CGSSAPI"]),
        module("SitePolicy", ["Challenges", "Addresses", "Cryptography"]),
        module("Parents", ["HTTP1", "Challenges", "Addresses", "Cryptography"]),
        module("PAC", ["JSON", "Cryptography", "CDuktape", "CJavaScriptCore", "CLinux"]),
        module(
            "Routing", ["Parents", "PAC", "HTTP1", "Addresses", "Cryptography", "CCurl"],
            settings: internalImports),
        module("OAuth", ["Challenges", "JSON", "Addresses", "Cryptography"]),
        module("DeviceManagement", ["OAuth", "JSON", "Addresses", "Cryptography"]),
        // Connections to the bus of the user's session, and the keyring on it.
        module("SessionBus", ["Cryptography", "CDBus"]),
        module("Broker", ["SessionBus", "JSON", "Cryptography"]),
        // Questions to the person: notifications of the desktop, and keys on the terminal.
        module("Notifications", ["SessionBus", "Events", "Cryptography", "CLinux"]),
        module("Certificates", ["Cryptography", "COpenSSL"]),
        module("Cookies", ["Cryptography"]),
        module("Vault", ["Cookies", "Challenges", "Cryptography"]),
        module(
            "Enrollment",
            ["Routing", "Parents", "Certificates", "Challenges", "Addresses", "Cryptography", "COpenSSL", "CCurl"]),
        module(
            "SignIn",
            [
                "DeviceManagement", "Enrollment", "OAuth", "JSON", "HTTP1", "Loopback", "SitePolicy", "Certificates",
                "Cookies", "Challenges", "Addresses", "Cryptography", "CCurl", "CLinux",
            ]),
        module(
            "Revocation", ["Routing", "Parents", "Certificates", "Addresses", "Cryptography", "CCurl"]),
        module("TLS", ["Certificates", "Challenges", "Cryptography", "COpenSSL"]),
        module(
            "Answering",
            [
                "TLS", "NTLM", "Negotiate", "SitePolicy", "Certificates", "Cookies", "Challenges", "Addresses",
                "Cryptography",
            ]),
        // The home: its files, who may write to them, and the errors that name them.
        module(
            "Home",
            [
                "Revocation", "Answering", "Vault", "SessionBus", "SitePolicy", "Certificates", "Challenges",
                "Addresses", "Cryptography", "CLinux",
            ], settings: internalImports),
        // Texts about sites, credentials and routes. Needs no home: policy and records are arguments.
        module(
            "Reporting",
            [
                "Answering", "Negotiate", "Parents", "SitePolicy", "Certificates", "Challenges", "HTTP1", "Addresses",
                "Cryptography",
            ], settings: internalImports),
        // What clients need to trust the home's root: trust stores, and their variables and files.
        module(
            "ClientSetup",
            ["Home", "SitePolicy", "Parents", "Certificates", "Addresses", "Cryptography", "CLinux"],
            settings: internalImports),
        module(
            "Countersign",
            [
                "Reporting", "ClientSetup", "Home", "SignIn", "DeviceManagement", "OAuth", "Broker", "Answering", "TLS",
                "Negotiate", "Vault", "Enrollment", "Revocation", "Routing", "Parents", "SitePolicy", "Page", "Events",
                "JSON",
                "Certificates", "Cookies", "Challenges", "Addresses", "Cryptography", "COpenSSL", "CCurl", "CLinux",
            ], [logging], settings: internalImports),
        // From here on, with SwiftNIO.
        module("ChannelTLS", ["TLS", "Certificates", "Challenges", "COpenSSL"], nio),
        module(
            "Upstream",
            [
                "Parents", "HTTP2", "HTTP1", "ChannelTLS", "TLS", "Certificates", "Challenges", "Addresses",
                "Cryptography",
            ],
            nio),
        module(
            "Proxy",
            [
                "Answering", "AWSSignature", "Parents", "HTTP2", "HTTP1", "Loopback", "Upstream", "ChannelTLS", "TLS",
                "SitePolicy", "Certificates", "Cookies", "Challenges", "Events", "JSON", "Addresses", "Cryptography",
                "CLinux",
            ], nio),
        module(
            "CountersignNIO",
            [
                "Countersign", "Reporting", "Home", "Proxy", "Routing", "Parents", "Upstream", "ChannelTLS",
                "Answering", "TLS", "SignIn", "DeviceManagement", "Broker", "Vault", "SitePolicy", "Certificates",
                "Challenges", "Page", "Events", "Addresses", "Cryptography",
            ], nio + [logging], settings: internalImports),
        module("CountersignServiceLifecycle", ["CountersignNIO"], [lifecycle], settings: internalImports),
        module(
            "CountersignURLSession", ["CountersignNIO", "Countersign", "Upstream", "HTTP1", "Addresses"], nio,
            settings: internalImports),
        // A provider on this machine, for the demo and for tests.
        module("Issuer", ["OAuth", "JSON", "HTTP1", "Certificates", "Cryptography"], nio),
        // The servers of `countersign demo`, with an NTLM acceptor and a client CA that tests use too.
        module(
            "Demo",
            [
                "Issuer", "HTTP1", "ChannelTLS", "TLS", "NTLM", "SPNEGO", "Certificates", "Challenges", "Cryptography",
                "COpenSSL",
            ], nio),
        module(
            "CountersignTesting",
            [
                "Countersign", "Demo", "Issuer", "OAuth", "JSON", "HTTP1", "ChannelTLS", "TLS", "Enrollment",
                "Certificates", "Challenges", "Cryptography",
            ], nio, settings: internalImports),
        .executableTarget(
            name: "CountersignCLI",
            dependencies: dependencies(
                [
                    "CountersignNIO", "Countersign", "Reporting", "ClientSetup", "Home", "SignIn", "DeviceManagement",
                    "Issuer", "OAuth", "JSON", "Demo", "Proxy", "Answering", "Negotiate", "Vault", "Enrollment",
                    "SitePolicy", "Certificates", "Cookies", "Challenges", "Addresses", "Cryptography", "CLinux",
                    "CCurl", "CQRCode", "Parents", "Routing", "PAC", "HTTP1", "Audit", "Prometheus", "Page", "Events",
                    "Notifications", "SessionBus",
                ], nio + [argumentParser, logging]),
            // The text of the systemd unit, for `countersign service install` (a link to Scripts/countersign.service),
            // and the page of `countersign ui`.
            resources: [.embedInCode("Service/countersign.service"), .embedInCode("Page/page.html")],
            linkerSettings: [
                // Resolves every function before any secret is read. The dynamic linker otherwise resolves a function
                // in its first call, and stores the vector registers on the stack meanwhile: with the secret that the
                // last memcpy left there.
                .unsafeFlags(["-Xlinker", "-z", "-Xlinker", "now"]),
                // No library looks up a symbol in the executable, so unused functions can be removed.
                .unsafeFlags(["-Xlinker", "--no-export-dynamic"], .when(configuration: .release)),
                // Debugging information is a third of the file, and the reader of a crash's backtrace expands it.
                .unsafeFlags(["-Xlinker", "--compress-debug-sections=zlib"], .when(configuration: .release)),
            ],
            plugins: [.plugin(name: "RecordCommit")]),
        // Tells the executable the commit that it was built from, for `--version`.
        .plugin(name: "RecordCommit", capability: .buildTool()),
        // Real servers in temporary folders, for the tests.
        .target(name: "CountersignTestOrigin", path: "Tests/TestOrigin", exclude: ["Servers", "Clients"]),
        .executableTarget(
            name: "CountersignDelegatingProxy",
            dependencies: dependencies(
                ["CountersignNIO", "Countersign", "Home", "Proxy", "TLS", "Vault", "Certificates"], [logging]),
            path: "Tests/DelegatingProxy"),
        tests("CryptographyTests", ["Cryptography"]),
        tests("AddressesTests", ["Addresses", "SitePolicy"]),
        tests("HTTP1Tests", ["HTTP1"], [.product(name: "NIOHTTP1", package: "swift-nio"), embedded]),
        tests("HTTP2Tests", ["HTTP2", "HTTP1", "CNGHTTP2"]),
        tests("EventsTests", ["Events", "JSON", "Cryptography"]),
        tests("PageTests", ["Page", "Events", "JSON", "Cryptography"]),
        tests("PrometheusTests", ["Prometheus"], [coreMetrics]),
        tests("AuditTests", ["Audit", "JSON", "Cryptography"]),
        tests("AWSSignatureTests", ["AWSSignature", "TestOrigin", "Cryptography"]),
        tests("ChallengesTests", ["NTLM", "Challenges", "Addresses", "Cryptography"]),
        tests("SPNEGOTests", ["SPNEGO", "Cryptography"]),
        tests("NTLMTests", ["NTLM", "SPNEGO", "Demo", "Challenges", "Addresses", "Cryptography"]),
        tests("NegotiateTests", ["Negotiate", "TestOrigin", "Cryptography"]),
        tests("SitePolicyTests", ["SitePolicy", "TestOrigin", "Challenges", "Addresses"]),
        tests("ParentsTests", ["Parents", "TestOrigin", "HTTP1", "Addresses", "Cryptography"]),
        tests("PACTests", ["PAC", "TestOrigin", "CountersignCLI"], exclude: ["confined.c"]),
        tests("RoutingTests", ["Routing", "TestOrigin", "CountersignCLI", "Parents", "PAC", "Addresses"]),
        tests("JSONTests", ["JSON", "Cryptography"]),
        tests("OAuthTests", ["OAuth", "TestOrigin", "JSON", "Cryptography"]),
        tests("DeviceManagementTests", ["DeviceManagement", "OAuth", "JSON", "Addresses"]),
        tests("SessionBusTests", ["SessionBus", "TestOrigin", "Cryptography"]),
        tests("BrokerTests", ["Broker", "TestOrigin", "JSON", "Cryptography"]),
        tests("NotificationsTests", ["Notifications", "SessionBus", "Events", "TestOrigin"]),
        tests("CertificatesTests", ["Certificates", "Demo", "Cryptography", "TestOrigin", "COpenSSL"]),
        tests("CookiesTests", ["Cookies", "Cryptography"]),
        tests("VaultTests", ["Vault", "Cookies", "Challenges", "Cryptography"]),
        tests(
            "TLSTests", ["ChannelTLS", "TLS", "TestOrigin", "Certificates", "Challenges", "Cryptography", "COpenSSL"],
            nio + [embedded]),
        tests("HomeTests", ["Home", "TestOrigin", "Vault", "Cryptography"]),
        tests(
            "AnsweringTests",
            ["Answering", "TLS", "SitePolicy", "Certificates", "Challenges", "Addresses", "Cryptography"]),
        tests(
            "EnrollmentTests",
            [
                "Enrollment", "Routing", "Parents", "TestOrigin", "Certificates", "Challenges",
                "Addresses", "Cryptography",
            ]),
        tests(
            "SignInTests",
            [
                "SignIn", "DeviceManagement", "Enrollment", "OAuth", "JSON", "TestOrigin", "Cookies", "Challenges",
                "Addresses", "Cryptography",
            ]),
        tests("IssuerTests", ["Issuer", "OAuth", "JSON", "TestOrigin", "Cryptography"], nio),
        tests(
            "RevocationTests", ["Revocation", "Routing", "Parents", "TestOrigin", "Certificates", "Addresses"]),
        tests(
            "UpstreamTests",
            [
                "Upstream", "TestOrigin", "Parents", "HTTP2", "HTTP1", "ChannelTLS", "TLS", "Certificates",
                "Challenges", "Addresses",
            ], nio + [embedded]),
        tests(
            "ProxyTests",
            [
                "Proxy", "TestOrigin", "Answering", "Demo", "Upstream", "Parents", "HTTP2", "HTTP1", "Loopback",
                "ChannelTLS", "TLS", "SitePolicy", "Certificates", "Cookies", "Challenges", "Addresses", "Cryptography",
            ], nio + [embedded]),
        tests(
            "CountersignTests",
            [
                "Countersign", "CountersignNIO", "CountersignServiceLifecycle", "CountersignURLSession",
                "CountersignTesting", "ClientSetup", "Home", "Demo", "TestOrigin", "DeviceManagement", "OAuth",
                "Broker", "SignIn", "Answering", "Upstream", "NTLM", "Vault", "Enrollment", "Certificates",
                "Cookies", "Challenges", "Addresses", "Cryptography", "COpenSSL", "CCurl",
            ], nio + [embedded, logging, lifecycle]),
        tests(
            "CommandTests",
            [
                "CountersignCLI", "Countersign", "ClientSetup", "Home", "TestOrigin", "Vault", "Reporting",
                "SitePolicy", "Parents",
                "Certificates", "Cookies", "Challenges", "Addresses", "Cryptography",
            ], exclude: ["Transcripts"]),
        tests(
            "EndToEndTests",
            [
                "TestOrigin", "CountersignCLI", "Countersign", "Home", "Vault", "Certificates", "Cryptography",
            ], [logging]),
    ]
)
