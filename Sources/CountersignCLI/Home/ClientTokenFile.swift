// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignHome
import CountersignProxy
import CountersignSitePolicy
import Glibc

/// The file with the tokens of which clients must send one: a token in its first line, or lines `NAME TOKEN`.
///
/// A token has at least 16 characters from `A-Z a-z 0-9 _ -`, which need no escaping in a URL. Blank lines and those
/// that begin with `#` do not count among named tokens.
struct ClientTokenFile {
    let path: String

    private static let limitBytes = 65_536

    /// All tokens, at least one.
    func read() throws -> [ClientToken] {
        var found = stat()
        guard stat(path, &found) == 0 else {
            throw CountersignError(
                .environment, "cannot read the client token file \(path): \(String(cString: strerror(errno)))",
                hint: "create it: (umask 077; head -c 24 /dev/urandom | base64 | tr '+/' '-_' > \(path))")
        }
        guard found.st_mode & 0o077 == 0 else {
            throw CountersignError(
                .configuration, "other users can read the client token file \(path)", hint: "chmod 600 \(path)")
        }
        var bytes = try HomeFile(path: path).read(upTo: Self.limitBytes)
        defer { bytes.wipe() }
        let lines = bytes.split(omittingEmptySubsequences: false) { $0 == UInt8(ascii: "\n") }
            .map { $0.last == UInt8(ascii: "\r") ? $0.dropLast() : $0 }
        if let first = lines.first, Self.isToken(first) { return [ClientToken(Secret(first))] }
        return try named(lines)
    }

    /// The token of this name; without one, the first.
    func read(name: String?) throws -> Secret {
        let tokens = try read()
        guard let name else { return tokens[0].secret }
        if let token = tokens.first(where: { $0.name == name }) { return token.secret }
        let names = tokens.compactMap(\.name)
        throw CountersignError(
            .configuration, "there is no token \(PrintableText.quoteASCII(name)) in the client token file \(path)",
            hint: names.isEmpty ? "its only token has no name" : "its tokens are \(names.joined(separator: ", "))")
    }

    private func named(_ lines: [ArraySlice<UInt8>]) throws -> [ClientToken] {
        var tokens: [ClientToken] = []
        for (index, line) in lines.enumerated() {
            let words = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            guard let first = words.first, first.first != UInt8(ascii: "#") else { continue }
            let name = String(decoding: first, as: UTF8.self)
            guard words.count == 2, Self.isToken(words[1]), ClientRule.Word.isName(name) else {
                throw fault(
                    tokens.isEmpty && words.count == 1
                        ? "the first line of the client token file \(path) is not a token"
                        : "line \(index + 1) of the client token file \(path) is not NAME TOKEN")
            }
            let secret = Secret(words[1])
            guard !tokens.contains(where: { $0.name == name || $0.secret == secret }) else {
                throw fault("line \(index + 1) of the client token file \(path) repeats a name or a token")
            }
            tokens.append(ClientToken(secret, name: name))
        }
        guard !tokens.isEmpty else { throw fault("the first line of the client token file \(path) is not a token") }
        return tokens
    }

    private func fault(_ message: String) -> CountersignError {
        CountersignError(
            .configuration, message,
            hint: "a token has at least 16 characters from A-Z a-z 0-9 _ -; with several, write NAME TOKEN in each line"
        )
    }

    private static func isToken(_ line: ArraySlice<UInt8>) -> Bool {
        line.count >= 16
            && line.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }
}
