// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Files of the checkout that this was built from, and of the machine.
enum Checkout {
    /// Where `Package.swift` of the product is.
    static let path = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(4)
        .joined(separator: "/")

    /// The bytes of a file, its path relative to the checkout.
    static func read(_ name: String) throws -> [UInt8] {
        let file = try require(fopen("\(path)/\(name)", "r"), "\(name) cannot be read: \(reason)")
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            guard count > 0 else { return bytes }
            bytes += buffer[..<count]
        }
    }

    /// Puts `text` in the file's place, whole or not at all.
    static func replace(_ name: String, with text: String) throws {
        let new = "\(path)/\(name).new"
        let file = try require(fopen(new, "w"), "\(name) cannot be written: \(reason)")
        let written = fputs(text, file) >= 0
        guard fclose(file) == 0, written, rename(new, "\(path)/\(name)") == 0 else {
            throw SetUpFailure("\(name) cannot be written: \(reason)")
        }
    }

    /// A new folder that is the caller's to remove.
    static func temporaryFolder() throws -> String {
        var template = Array("/tmp/countersign-micro-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw SetUpFailure("no temporary folder: \(reason)") }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private static var reason: String { String(cString: strerror(errno)) }
}
