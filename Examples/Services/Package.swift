// swift-tools-version: 6.2
import PackageDescription

// A package of its own, because async-http-client and Hummingbird take minutes to build. Scripts/test-services builds
// and tests it.

let package = Package(
    name: "services",
    dependencies: [
        .package(name: "countersign", path: "../.."),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    ],
    targets: [
        .executableTarget(
            name: "relay",
            dependencies: [
                .product(name: "Countersign", package: "countersign"),
                .product(name: "CountersignNIO", package: "countersign"),
                .product(name: "CountersignServiceLifecycle", package: "countersign"),
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOSSL", package: "swift-nio-ssl"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ])
    ]
)
