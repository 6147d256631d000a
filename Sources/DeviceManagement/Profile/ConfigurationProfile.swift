// SPDX-License-Identifier: Apache-2.0

import CountersignCryptography
import CountersignOAuth

/// An Apple configuration profile: the settings that an organisation wants on a device. Only certificates, identities
/// and an enrolment over EST can be installed here; everything else is named, so that a person sees the omissions.
package struct ConfigurationProfile: Equatable, Sendable {
    package enum Content: Equatable, Sendable {
        /// A certificate that the organisation's servers have in their chains, in DER or PEM.
        case certificate([UInt8])
        /// A certificate with its key (PKCS#12), and the password if the profile has it.
        case identity(Secret, password: Secret?)
        /// An enrolment over EST (RFC 7030), a payload of our own.
        case est(ESTPayload)
        /// A payload that would have an effect here, but cannot be installed.
        case refused(reason: String)
        /// A payload that means nothing to this program.
        case skipped
    }

    /// A service that issues a certificate for this device's user.
    package struct ESTPayload: Equatable, Sendable {
        package let service: EndpointURL
        /// The name under which the identity is stored.
        package let name: String
        /// The certificates that the service's chain may end in, in DER or PEM; empty for the system's.
        package let anchors: [[UInt8]]
    }

    package struct Payload: Equatable, Sendable {
        /// `com.apple.security.root`
        package let type: String
        /// For people: the display name, else the identifier.
        package let name: String
        package let identifier: String
        package let content: Content
    }

    /// For people; `PayloadDisplayName`, else the identifier.
    package let name: String
    /// `PayloadIdentifier`: a profile with the same one replaces this one.
    package let identifier: String
    package let organization: String?
    package let description: String?
    package let payloads: [Payload]

    private static let maximumPayloads = 64
    /// The type of the payload that only this program knows.
    package static let estType = "countersign.est"

    /// Throws `malformed` for a document that is not a profile, naming the payload and key at fault.
    package init(
        _ document: [UInt8], _ transport: EndpointURL.Transport = .secure
    ) throws(DeviceManagementError) {
        let list = try PropertyList(document)
        guard list.entries != nil else { throw Self.fault("the profile is not a dictionary") }
        let place = "the profile"
        guard try Self.string("PayloadType", of: list, place) == "Configuration" else {
            throw Self.fault("PayloadType of the profile is not \"Configuration\"")
        }
        identifier = try Self.identifier(of: list, place)
        name = try Self.stringIfPresent("PayloadDisplayName", of: list, place) ?? identifier
        organization = try Self.stringIfPresent("PayloadOrganization", of: list, place)
        description = try Self.stringIfPresent("PayloadDescription", of: list, place)
        guard let content = list["PayloadContent"] else { throw Self.fault("the profile has no PayloadContent") }
        guard let elements = content.elements else {
            throw Self.fault(
                "PayloadContent of the profile is not an array",
                hint: content.bytes == nil ? nil : "the profile is encrypted; ask for one that is only signed")
        }
        guard elements.count <= Self.maximumPayloads else {
            throw Self.fault("the profile has more than \(Self.maximumPayloads) payloads")
        }
        var payloads: [Payload] = []
        var identifiers: Set<String> = []
        for (index, element) in elements.enumerated() {
            let payload = try Self.payload(element, "payload \(index + 1)", transport)
            guard identifiers.insert(payload.identifier).inserted else {
                throw Self.fault("payload \(index + 1) has the PayloadIdentifier of another one")
            }
            payloads.append(payload)
        }
        self.payloads = payloads
    }

    private static func payload(
        _ list: PropertyList, _ place: String, _ transport: EndpointURL.Transport
    ) throws(DeviceManagementError) -> Payload {
        guard list.entries != nil else { throw fault("\(place) is not a dictionary") }
        let type = try string("PayloadType", of: list, place)
        let identifier = try identifier(of: list, place)
        let name = try stringIfPresent("PayloadDisplayName", of: list, place) ?? identifier
        return Payload(
            type: type, name: name, identifier: identifier,
            content: try content(type, list, "\(place) (\(PrintableText.plain(type)))", transport))
    }

    private static func content(
        _ type: String, _ list: PropertyList, _ place: String, _ transport: EndpointURL.Transport
    ) throws(DeviceManagementError) -> Content {
        switch type {
        case "com.apple.security.root", "com.apple.security.pkcs1", "com.apple.security.pem":
            return .certificate(try data("PayloadContent", of: list, place))
        case "com.apple.security.pkcs12":
            let password = try stringIfPresent("Password", of: list, place)
            return .identity(
                Secret(try data("PayloadContent", of: list, place)), password: password.map { Secret(utf8: $0) })
        case estType:
            return .est(try est(list, place, transport))
        case "com.apple.security.scep":
            return .refused(
                reason: "SCEP protects the request with a shared password and old algorithms; ask for EST instead")
        case "com.apple.security.acme":
            return .refused(reason: "its certificates need an attestation by Apple's hardware")
        case "com.apple.mdm":
            return .refused(reason: "this program is not managed remotely")
        default:
            return .skipped
        }
    }

    private static func est(
        _ list: PropertyList, _ place: String, _ transport: EndpointURL.Transport
    ) throws(DeviceManagementError) -> ESTPayload {
        let address = try string("URL", of: list, place)
        let service: EndpointURL
        do {
            service = try EndpointURL(address, "URL", transport)
        } catch {
            throw fault("\(place): \(error.detail)")
        }
        let name = try stringIfPresent("Name", of: list, place) ?? "enrollment"
        var anchors: [[UInt8]] = []
        if let value = list["Anchors"] {
            guard let elements = value.elements else { throw fault("Anchors of \(place) is not an array of data") }
            for element in elements {
                guard let bytes = element.bytes, !bytes.isEmpty else {
                    throw fault("Anchors of \(place) is not an array of data")
                }
                anchors.append(bytes)
            }
        }
        return ESTPayload(service: service, name: name, anchors: anchors)
    }

    // MARK: Members

    private static let maximumIdentifierBytes = 256

    private static func identifier(of list: PropertyList, _ place: String) throws(DeviceManagementError) -> String {
        let identifier = try string("PayloadIdentifier", of: list, place)
        guard identifier.utf8.count <= maximumIdentifierBytes,
            identifier.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw fault("PayloadIdentifier of \(place) is too long, or has a character that is not visible ASCII") }
        return identifier
    }

    private static func string(_ key: String, of list: PropertyList, _ place: String) throws(DeviceManagementError)
        -> String
    {
        guard let text = try stringIfPresent(key, of: list, place) else { throw fault("\(place) has no \(key)") }
        return text
    }

    /// Also nil if the string is empty.
    private static func stringIfPresent(
        _ key: String, of list: PropertyList, _ place: String
    ) throws(DeviceManagementError) -> String? {
        guard let value = list[key] else { return nil }
        guard let text = value.text else { throw fault("\(key) of \(place) is not a string") }
        return text.isEmpty ? nil : text
    }

    private static func data(_ key: String, of list: PropertyList, _ place: String) throws(DeviceManagementError)
        -> [UInt8]
    {
        guard let bytes = list[key]?.bytes, !bytes.isEmpty else {
            throw fault("\(key) of \(place) is missing or not data")
        }
        return bytes
    }

    private static func fault(_ detail: String, hint: String? = nil) -> DeviceManagementError {
        DeviceManagementError(.malformed, detail, hint: hint)
    }
}
