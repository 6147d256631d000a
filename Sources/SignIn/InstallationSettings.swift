// SPDX-License-Identifier: Apache-2.0

import CountersignJSON
import CountersignOAuth

/// The installation of a GitHub App, as a profile names it.
extension MachineGrant.Installation {
    /// The keys that OAuth alone has.
    private static let otherKeys = ["scopes", "resources", "claims", "token_parameters", "dpop"]
    /// GitHub's own limit.
    private static let maximumRepositories = 500
    private static let maximumPermissions = 100

    /// Throws ``JSONError``.
    init(_ reader: inout JSONReader) throws {
        for key in Self.otherKeys where reader.valueIfPresent(key) != nil {
            throw reader.invalid(
                key, "is not for GitHub Apps, whose tokens are limited by \"repositories\" and \"permissions\"")
        }
        let repositories = try reader.stringsIfPresent("repositories") ?? []
        guard repositories.count <= Self.maximumRepositories, repositories.allSatisfy(Self.isRepository) else {
            throw reader.invalid(
                "repositories", "must list up to \(Self.maximumRepositories) repositories without their owner")
        }
        self.init(repositories: repositories, permissions: try Self.permissions(&reader))
    }

    private static func permissions(_ reader: inout JSONReader) throws -> [Permission] {
        let key = "permissions"
        guard let value = reader.valueIfPresent(key) else { return [] }
        guard case .object(let members) = value.content, members.count <= maximumPermissions else {
            throw reader.invalid(key, "must be an object, such as {\"contents\": \"read\"}")
        }
        return try members.map { member in
            guard case .string(let level) = member.value.content, isWord(member.name),
                ["read", "write", "admin"].contains(level)
            else {
                throw JSONError(
                    .wrongValue, at: member.position,
                    "\"\(key)\" must have names such as \"pull_requests\", each with \"read\", \"write\" or \"admin\"")
            }
            return Permission(member.name, level)
        }
    }

    /// The characters that GitHub permits in names.
    private static func isRepository(_ text: String) -> Bool {
        (1...100).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (byte | 0x20) &- UInt8(ascii: "a") < 26 || (0x30...0x39).contains(byte) || "-_.".utf8.contains(byte)
            }
    }

    /// Whether it is the address at which an app gets tokens: `…/app/installations/12345/access_tokens`.
    static func isEndpoint(_ url: EndpointURL) -> Bool {
        let parts = url.target.split(separator: "/", omittingEmptySubsequences: false).suffix(4)
        guard parts.count == 4, parts.first == "app" else { return false }
        let number = parts[parts.startIndex + 2]
        return parts[parts.startIndex + 1] == "installations" && parts.last == "access_tokens"
            && (1...20).contains(number.utf8.count) && number.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }
}
