// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignDeviceManagement
import CountersignJSON
import CountersignOAuth

/// The permissions of the provider's pages for device management, from a profile: `"special_urls"`.
package struct SpecialURLSettings: Equatable, Sendable {
    package struct Parameter: Equatable, Sendable {
        package let name: String
        package let value: String
    }

    /// Where enrolment and installation pages may be, besides the sign-in's own origins.
    package let hosts: [Origin]
    /// Which pages may open a second window by response headers, and to which it may go.
    package let handoffHosts: [Origin]
    /// Added to the requests for enrolment and compliance pages.
    package let headers: [AdditionalHeader]
    /// Added to the addresses of enrolment and compliance pages.
    package let parameters: [Parameter]
    /// Whether the sign-in fails without a broker refresh token before an enrolment; nil to request none.
    package let brokerToken: BrokerToken?

    package enum BrokerToken: String, CaseIterable, Sendable {
        case `continue`
        case fail
    }

    /// For a profile without settings of its own: only the sign-in's own origins.
    package static let standard = SpecialURLSettings(
        hosts: [], handoffHosts: [], headers: [], parameters: [], brokerToken: nil)

    private static let maximumHosts = 12
    private static let maximumHeaders = 8
    private static let maximumParameters = 16
    private static let maximumHeaderBytes = 4096
    /// The limits of a request. Those of the window are a little higher.
    static let maximumRequestHeaders = 16
    static let maximumRequestBytes = 60 << 10
    /// Fields that the window sets itself.
    private static let reserved: Set<String> = [
        "connection", "content-length", "cookie", "host", "origin", "proxy-authorization", "referer",
        "transfer-encoding", "upgrade", "user-agent",
    ]

    private init(
        hosts: [Origin], handoffHosts: [Origin], headers: [AdditionalHeader], parameters: [Parameter],
        brokerToken: BrokerToken?
    ) {
        self.hosts = hosts
        self.handoffHosts = handoffHosts
        self.headers = headers
        self.parameters = parameters
        self.brokerToken = brokerToken
    }

    /// `profile` is its reader. Nil if the profile does not enable special URLs.
    init?(_ profile: inout JSONReader) throws {
        guard var reader = try profile.objectIfPresent("special_urls") else { return nil }
        hosts = try SignInProfile.origins("hosts", &reader, upTo: Self.maximumHosts)
        handoffHosts = try SignInProfile.origins("handoff_hosts", &reader, upTo: Self.maximumHosts)
        headers = try Self.members("headers", &reader, upTo: Self.maximumHeaders) { name, value in
            guard Self.isName(name), name.lowercased() != "authorization" else {
                return "is not the name of a field that can be added"
            }
            guard value.utf8.count <= Self.maximumHeaderBytes, value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else { return "must be printable ASCII of at most \(Self.maximumHeaderBytes) bytes" }
            return nil
        }.map { AdditionalHeader($0.name, $0.value) }
        parameters = try Self.members("parameters", &reader, upTo: Self.maximumParameters) { name, _ in
            name.isEmpty ? "is not the name of a parameter" : nil
        }.map { Parameter(name: $0.name, value: $0.value) }
        brokerToken = try reader.stringIfPresent("broker_token").map { text in
            guard let policy = BrokerToken(rawValue: text) else {
                throw reader.invalid("broker_token", "must be \"continue\" or \"fail\"")
            }
            return policy
        }
        try reader.finish()
    }

    /// The members of an object of strings. `fault` returns the reason that one cannot be used.
    private static func members(
        _ key: String, _ reader: inout JSONReader, upTo limit: Int, fault: (String, String) -> String?
    ) throws -> [(name: String, value: String)] {
        guard let value = reader.valueIfPresent(key) else { return [] }
        guard case .object(let members) = value.content else { throw reader.invalid(key, "must be an object") }
        guard members.count <= limit else { throw reader.invalid(key, "has more than \(limit) members") }
        return try members.map { member in
            guard case .string(let text) = member.value.content else {
                throw JSONError(.wrongValue, at: member.value.position, "\"\(member.name)\" must be a string")
            }
            if let fault = fault(member.name, text) {
                throw JSONError(.wrongValue, at: member.position, "\"\(member.name)\" \(fault)")
            }
            return (member.name, text)
        }
    }

    /// Whether the window accepts a field of this name.
    static func isName(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy(isToken) && !reserved.contains(name.lowercased())
    }

    /// RFC 9110 §5.6.2.
    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
