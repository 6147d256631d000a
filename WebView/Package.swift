// swift-tools-version: 6.2
import PackageDescription

// A package of its own, so that the product builds and runs without GTK. It uses nothing of the product's package. The
// product can use `WebViewProtocol`, which has no dependencies, through a symbolic link.

let package = Package(
    name: "webview",
    products: [.executable(name: "countersign-webview", targets: ["countersign-webview"])],
    targets: [
        .systemLibrary(
            name: "CWebKitGTK", pkgConfig: "webkitgtk-6.0", providers: [.apt(["libwebkitgtk-6.0-dev"])]),
        .target(name: "WebViewProtocol"),
        .executableTarget(name: "countersign-webview", dependencies: ["WebViewProtocol", "CWebKitGTK"]),
        // An example for the library's documentation.
        .executableTarget(name: "webpage", dependencies: ["CWebKitGTK"]),
        .testTarget(name: "WebViewProtocolTests", dependencies: ["WebViewProtocol"]),
        .testTarget(
            name: "WebViewTests", dependencies: ["WebViewProtocol", "countersign-webview"], exclude: ["Servers"]),
    ],
    swiftLanguageModes: [.v6]
)
