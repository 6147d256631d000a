// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Prometheus' own checks of what it reads.
enum Promtool {
    struct Result: Equatable {
        let status: Int32
        /// What it printed to both of its outputs.
        let output: String
    }

    private static let path = "/usr/bin/promtool"

    static let isInstalled = FileManager.default.isExecutableFile(atPath: path)

    static func run(_ arguments: [String], input: [UInt8] = []) throws -> Result {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("promtool-\(UUID().uuidString)")
        try Data(input).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.standardInput = try FileHandle(forReadingFrom: file)
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let printed = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Result(status: process.terminationStatus, output: String(decoding: printed, as: UTF8.self))
    }
}
