// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "examples",
    dependencies: [
        .package(name: "countersign", path: ".."),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ],
    targets: [
        .executableTarget(
            name: "fetch",
            dependencies: [
                .product(name: "Countersign", package: "countersign"),
                .product(name: "CountersignNIO", package: "countersign"),
                .product(name: "NIOCore", package: "swift-nio"), .product(name: "NIOPosix", package: "swift-nio"),
                .product(name: "NIOHTTP1", package: "swift-nio"),
            ]),
        .executableTarget(
            name: "delegate",
            dependencies: [.product(name: "CountersignURLSession", package: "countersign")]),
        .executableTarget(
            name: "transfer",
            dependencies: [.product(name: "CountersignURLSession", package: "countersign")]),
    ]
)
