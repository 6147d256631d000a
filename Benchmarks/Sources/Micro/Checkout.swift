// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Access to files of the checkout that this program was built from, and temporary folders.
enum Checkout {
    /// The folder of the product's `Package.swift`.
    static let path = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(4)
        .joined(separator: "/")

    /// The bytes of a file, named relative to the checkout.
    static func read(_ name: String) throws -> [UInt8] {
        let file = try require(fopen("\(path)/\(name)", "r"), "cannot read \(name): \(reason)")
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
        }
    }

    /// Replaces the file's content atomically.
    static func replace(_ name: String, with text: String) throws {
        let new = "\(path)/\(name).new"
        let file = try require(fopen(new, "w"), "cannot write \(name): \(reason)")
        let written = fputs(text, file) >= 0
        guard fclose(file) == 0, written, rename(new, "\(path)/\(name)") == 0 else {
            throw SetUpFailure("cannot write \(name): \(reason)")
        }
    }

    /// Creates a folder, which the caller has to remove.
    static func temporaryFolder() throws -> String {
        var template = Array("/tmp/countersign-micro-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SetUpFailure("cannot create a temporary folder: \(reason)") }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static var reason: String { String(cString: strerror(errno)) }
}
