// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignJSON
import CountersignOAuth

/// A reply of the compliance service. Its members have the names and the form of Microsoft's service for Linux, if that
/// has them: `ComplianceState` and `NoncompliantRules`.
///
/// Every value is checked, and a faulty one makes the whole reply faulty. Members that are not known are ignored, so
/// that a service can add some.
package struct ComplianceReply: Equatable, Sendable {
    package enum State: String, CaseIterable, Sendable {
        case compliant = "Compliant"
        case noncompliant = "Noncompliant"
        /// Not known yet: ask again.
        case pending = "Pending"
        /// A person has to open ``ComplianceReply/page``.
        case interactionRequired = "InteractionRequired"
        /// The person has refused at the page.
        case cancelled = "Cancelled"
    }

    package let state: State
    package let title: String?
    package let message: String?
    /// Names the dialogue in further requests.
    package let session: Secret?
    package let page: EndpointURL?
    /// Seconds between two requests.
    package let interval: Int64
    package let rules: [ComplianceRule]
    /// No protection policy is assigned to the account: code 103.
    package let hasNoPolicy: Bool
    package let restarts: Bool

    /// The largest reply, in bytes.
    package static let maximumBytes = 64 << 10
    static let maximumRules = 64
    static let maximumTitleBytes = 256
    static let maximumTextBytes = 4096
    static let maximumSessionBytes = 512
    static let intervals: ClosedRange<Int64> = 1...300
    private static let usualInterval: Int64 = 5
    private static let noPolicy: Int64 = 103

    /// Throws `malformed`, and `foreignPage` for a page that is not on the profile's hosts.
    package init(_ body: [UInt8], from service: ComplianceService) throws(DeviceManagementError) {
        let members: Members
        do throws(JSONError) {
            let value = try JSONParser.parse(
                body, limits: JSONLimits(bytes: Self.maximumBytes, depth: 8), secrets: ["Session"])
            members = try Members(value)
        } catch {
            throw DeviceManagementError(
                .malformed, "the reply of the compliance service cannot be used: \(error.detail)")
        }
        state = members.state
        title = members.title
        message = members.message
        session = members.session
        interval = members.interval
        rules = members.rules
        hasNoPolicy = members.code == Self.noPolicy
        restarts = members.restarts
        page = try members.page.map { text throws(DeviceManagementError) in try service.page(text) }
    }

    /// By type, before the page is compared with the profile's hosts.
    private struct Members {
        let state: State
        let title: String?
        let message: String?
        let session: Secret?
        let page: String?
        let interval: Int64
        let code: Int64?
        let restarts: Bool
        let rules: [ComplianceRule]

        init(_ value: JSONValue) throws(JSONError) {
            var reader = try JSONReader(value, "the reply", .lenient)
            guard try reader.integer("Version") == ComplianceRequest.version else {
                throw reader.invalid("Version", "is not \(ComplianceRequest.version)")
            }
            guard let state = State(rawValue: try reader.string("ComplianceState")) else {
                let known = State.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
                throw reader.invalid("ComplianceState", "must be one of \(known)")
            }
            self.state = state
            title = try Self.text("Title", &reader, upTo: ComplianceReply.maximumTitleBytes)
            message = try Self.text("Message", &reader, upTo: ComplianceReply.maximumTextBytes)
            session = try Self.session(&reader)
            page = try reader.stringIfPresent("PageUri")
            interval = try reader.integerIfPresent("PollInterval") ?? ComplianceReply.usualInterval
            guard ComplianceReply.intervals.contains(interval) else {
                throw reader.invalid("PollInterval", "must be 1 to 300 seconds")
            }
            code = try reader.integerIfPresent("Code")
            restarts = try reader.boolIfPresent("Restart") ?? false
            rules = try Self.rules(&reader)
        }

        private static func session(_ reader: inout JSONReader) throws(JSONError) -> Secret? {
            guard let session = try reader.secretIfPresent("Session") else { return nil }
            let isValid =
                (1...ComplianceReply.maximumSessionBytes).contains(session.count)
                && session.withBytes { $0.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C } }
            guard isValid else { throw reader.invalid("Session", "is empty, too long or has a forbidden character") }
            return session
        }

        private static func rules(_ reader: inout JSONReader) throws(JSONError) -> [ComplianceRule] {
            let key = "NoncompliantRules"
            let values = try reader.arrayIfPresent(key) ?? []
            guard values.count <= ComplianceReply.maximumRules else {
                throw reader.invalid(key, "has more than \(ComplianceReply.maximumRules) elements")
            }
            return try values.map { value throws(JSONError) in
                var rule = try JSONReader(value, "a rule", .lenient)
                let limit = ComplianceReply.maximumTextBytes
                let setting = try text("SettingID", &rule, upTo: ComplianceReply.maximumTitleBytes)
                let link = try rule.stringIfPresent("MoreInfoUri").flatMap { $0.isEmpty ? nil : $0 }
                if let link, (try? EndpointURL(link, "MoreInfoUri")) == nil {
                    throw rule.invalid("MoreInfoUri", "is not an https URL")
                }
                return ComplianceRule(
                    setting: setting ?? "", expected: try text("ExpectedValue", &rule, upTo: limit) ?? "",
                    title: try text("Title", &rule, upTo: limit) ?? setting ?? "a requirement",
                    description: try text("Description", &rule, upTo: limit) ?? "", moreInformation: link)
            }
        }

        /// One line for people; nil if nothing is left.
        private static func text(
            _ name: String, _ reader: inout JSONReader, upTo limit: Int
        ) throws(JSONError) -> String? {
            guard let text = try reader.stringIfPresent(name) else { return nil }
            guard text.utf8.count <= limit else { throw reader.invalid(name, "has more than \(limit) bytes") }
            let line = PrintableText.line(text, limit: limit)
            return line.isEmpty ? nil : line
        }
    }
}
