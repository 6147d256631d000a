// swift-tools-version: 6.2
import PackageDescription

// The product's modules appear here through symbolic links: their `package` declarations are visible only within one
// package. Being a separate package, this one adds nothing to the product's build. Scripts/fuzz builds and runs it with
// libFuzzer and AddressSanitizer.

/// The product's module in `Sources/FOLDER`, a symbolic link, with the settings of the product's package.
func module(_ folder: String, _ modules: [String] = [], settings: [SwiftSetting] = []) -> Target {
    .target(
        name: prefixed(folder), dependencies: dependencies(modules), path: "Sources/\(folder)", swiftSettings: settings)
}

let internalImports: [SwiftSetting] = [.enableUpcomingFeature("InternalImportsByDefault")]

func dependencies(_ modules: [String]) -> [Target.Dependency] { modules.map { .byName(name: prefixed($0)) } }

func prefixed(_ folder: String) -> String { "Countersign\(folder)" }

let package = Package(
    name: "fuzz",
    targets: [
        .systemLibrary(
            name: prefixed("COpenSSL"), path: "Sources/COpenSSL", pkgConfig: "openssl",
            providers: [.apt(["libssl-dev"])]),
        // Only the headers: the product loads both libraries at run time.
        .systemLibrary(
            name: prefixed("CCurl"), path: "Sources/CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: prefixed("CGSSAPI"), path: "Sources/CGSSAPI", providers: [.apt(["libkrb5-dev"])]),
        .systemLibrary(name: prefixed("CLinux"), path: "Sources/CLinux"),
        .systemLibrary(name: prefixed("CDuktape"), path: "Sources/CDuktape"),
        .systemLibrary(name: prefixed("CJavaScriptCore"), path: "Sources/CJavaScriptCore"),
        module("Cryptography", ["COpenSSL"]),
        module("Addresses", ["Cryptography"]),
        module("HTTP1"),
        module("Loopback"),
        module("JSON", ["Cryptography"]),
        module("Challenges", ["JSON", "Addresses", "Cryptography"]),
        module("SPNEGO", ["Cryptography"]),
        module("NTLM", ["SPNEGO", "Challenges", "Cryptography"]),
        module("SitePolicy", ["Challenges", "Addresses", "Cryptography"]),
        module("Parents", ["HTTP1", "Challenges", "Addresses", "Cryptography"]),
        module("PAC", ["JSON", "Cryptography", "CDuktape", "CJavaScriptCore", "CLinux"]),
        module(
            "Routing", ["Parents", "PAC", "HTTP1", "Addresses", "Cryptography", "CCurl"],
            settings: internalImports),
        module("OAuth", ["Challenges", "JSON", "Addresses", "Cryptography"]),
        module("DeviceManagement", ["OAuth", "JSON", "Addresses", "Cryptography"]),
        module("Negotiate", ["SPNEGO", "Challenges", "Cryptography", "CGSSAPI"]),
        module("Certificates", ["Cryptography", "COpenSSL"]),
        module("Cookies", ["Cryptography"]),
        module(
            "Revocation", ["Routing", "Parents", "Certificates", "Addresses", "Cryptography", "CCurl"]),
        module(
            "Enrollment",
            ["Routing", "Parents", "Certificates", "Challenges", "Addresses", "Cryptography", "COpenSSL", "CCurl"]),
        module(
            "SignIn",
            [
                "DeviceManagement", "Enrollment", "OAuth", "JSON", "HTTP1", "Loopback", "SitePolicy", "Certificates",
                "Cookies", "Challenges", "Addresses", "Cryptography", "CCurl", "CLinux",
            ]),
        .executableTarget(
            name: "Fuzz",
            dependencies: dependencies([
                "HTTP1", "Challenges", "NTLM", "SPNEGO", "Negotiate", "SitePolicy", "JSON", "OAuth", "SignIn",
                "DeviceManagement", "Certificates", "Revocation", "Parents", "Addresses", "Cryptography",
            ])),
    ]
)
