// SPDX-License-Identifier: Apache-2.0

import CountersignAddresses
import CountersignJSON
import CountersignOAuth

/// The service that knows whether a device complies: `"compliance_service"` in the profile.
package struct ComplianceService: Sendable, Equatable {
    /// Where requests go.
    package let url: EndpointURL
    /// Where people can open the organisation's page if the service names none.
    package let page: EndpointURL?
    /// Whether authorization and token requests say that this client applies protection policies.
    package let sendsCapability: Bool
    /// Whether the access token of the sign-in is for this service, too, and is sent to it.
    package let takesAccessToken: Bool
    /// The number of days without a confirmation that the device complies after which the results of the sign-in are
    /// wiped; nil for never.
    package let wipeAfterDays: Int64?
    /// Where the pages may be that the service has opened.
    package let pageOrigins: [Origin]
    let transport: EndpointURL.Transport

    private static let maximumHosts = 16

    /// Nil if the profile names no service. `origins` are the other origins of the profile: its issuer's and those of
    /// its navigation hosts. Throws ``JSONError``.
    package init?(
        _ profile: inout JSONReader, origins: [Origin], _ transport: EndpointURL.Transport
    ) throws(JSONError) {
        guard var reader = try profile.objectIfPresent("compliance_service") else { return nil }
        let url = try Self.url("url", of: try reader.string("url"), reader, transport)
        let page = try reader.stringIfPresent("page")
        let hosts = try reader.stringsIfPresent("hosts") ?? []
        guard hosts.count <= Self.maximumHosts else {
            throw reader.invalid("hosts", "has more than \(Self.maximumHosts) entries")
        }
        var all = [url.origin] + origins
        for host in hosts {
            guard !host.utf8.contains(where: { "/?#@*".utf8.contains($0) }),
                let url = try? EndpointURL("https://\(host)", "hosts")
            else {
                throw reader.invalid("hosts", "must list hosts, such as portal.corp.example")
            }
            all.append(url.origin)
        }
        pageOrigins = all
        self.url = url
        self.transport = transport
        self.page = try page.map { text throws(JSONError) in
            let page = try Self.url("page", of: text, reader, transport)
            guard all.contains(page.origin) else {
                throw reader.invalid("page", "must be on a host of the profile; name it in \"hosts\"")
            }
            return page
        }
        sendsCapability = try reader.boolIfPresent("protapp") ?? false
        takesAccessToken = try reader.boolIfPresent("access_token") ?? false
        wipeAfterDays = try reader.integerIfPresent("wipe_after_days")
        if let wipeAfterDays, !ComplianceDeadline.permittedDays.contains(wipeAfterDays) {
            let days = ComplianceDeadline.permittedDays
            throw reader.invalid("wipe_after_days", "must be \(days.lowerBound) to \(days.upperBound) days")
        }
        try reader.finish()
    }

    private static func url(
        _ key: String, of text: String, _ reader: JSONReader, _ transport: EndpointURL.Transport
    ) throws(JSONError) -> EndpointURL {
        do throws(OAuthError) {
            return try EndpointURL(text, key, transport)
        } catch {
            throw reader.invalid(key, "cannot be used: \(error.detail)")
        }
    }

    /// A page that the service wants opened. Throws `foreignPage` unless it is https and on a host of the profile.
    func page(_ text: String) throws(DeviceManagementError) -> EndpointURL {
        let url: EndpointURL
        do throws(OAuthError) {
            url = try EndpointURL(text, "PageUri", transport)
        } catch {
            throw DeviceManagementError(.foreignPage, "\(error.detail); the page was not opened")
        }
        guard pageOrigins.contains(url.origin) else {
            throw DeviceManagementError(
                .foreignPage, "PageUri leads to \(url.origin), which is not one of the profile's hosts",
                hint: "if the organisation uses that host, its profile must name it in the service's \"hosts\"")
        }
        return url
    }
}
