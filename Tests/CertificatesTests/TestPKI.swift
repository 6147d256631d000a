// SPDX-License-Identifier: Apache-2.0

import CountersignCertificates
import CountersignCryptography
import Foundation
import Testing

/// The certificates of `Certs/dev/make`.
enum TestPKI {
    /// 2026-01-01, within the dates of all certificates that are meant to be valid.
    static let now: Int64 = 1_767_225_600

    /// The system time, for oracles that cannot use another.
    static var today: Int64 { Int64(Date().timeIntervalSince1970) }

    static func path(_ name: String) -> String {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return root.appendingPathComponent("Certs/dev/pki/\(name)").path
    }

    static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path(name))))
    }

    static func chain(_ name: String) throws -> [Certificate] { try Certificate.readPEM(bytes(name + ".pem")) }

    static func leaf(_ name: String) throws -> Certificate { try #require(try chain(name).first) }

    static func key(_ name: String) throws -> PrivateKey {
        try IdentityFile.read(bytes(name + ".key.pem") + bytes(name + ".pem"), password: nil).key
    }

    static func identity(_ name: String) throws -> Identity {
        try Identity(name: name, chain: chain(name), key: key(name))
    }

    static let password = Secret(utf8: "fixture")
}

/// A folder that is removed with the value.
final class TemporaryFolder {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appendingPathComponent("certificates-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    func path(_ name: String) -> String { url.appendingPathComponent(name).path }

    @discardableResult
    func write(_ name: String, _ text: String) throws -> String {
        try Data(text.utf8).write(to: url.appendingPathComponent(name))
        return path(name)
    }

    func bytes(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: url.appendingPathComponent(name))) }
}

/// Runs a program and returns its status and the text of both outputs.
@discardableResult
func run(_ program: String, _ arguments: [String]) throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [program] + arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: output, as: UTF8.self))
}

/// Runs openssl, which has to succeed, and returns its output without the final line break.
@discardableResult
func openssl(_ arguments: String...) throws -> String {
    let (status, output) = try run("openssl", arguments)
    try #require(status == 0, "openssl \(arguments.joined(separator: " ")): \(output)")
    return output.trimmingCharacters(in: .whitespacesAndNewlines)
}

/// The code of the error that `body` throws.
func code(of body: () throws -> Void) -> CertificateError.Code? {
    do { try body() } catch { return (error as? CertificateError)?.code }
    return nil
}
