// SPDX-License-Identifier: Apache-2.0

package import CountersignCryptography
package import CountersignReporting

/// Runs a proxy in a running server for the descendants of the command, and for clients with its token, until the
/// command closes its end of the connection.
package struct RunProxy: VaultOperation {
    package static let name = "runProxy"
    private let spoolBytes: Int

    package init(spoolBytes: Int) { self.spoolBytes = spoolBytes }

    package var isLong: Bool { true }

    package func perform(
        on vault: VaultOperations, secret: Secret?, _ dialogue: OperationDialogue
    ) throws -> UnansweredReport {
        try vault.served().runProxy(spoolBytes)
    }
}

/// The challenges that a proxy for one command could not answer, as sentences.
package struct UnansweredReport: Equatable, Sendable, Codable {
    /// If the command succeeded.
    package let afterSuccess: [String]
    /// If the command failed.
    package let afterFailure: [String]
    package let isListEmpty: Bool
    /// Whether a certificate was not trusted; nil from an earlier version.
    package let hasUntrusted: Bool?

    package init(_ sites: UnansweredSites, isListEmpty: Bool) {
        afterSuccess = sites.sites(hasFailed: false).map(\.sentence) + sites.distrust(hasFailed: false)
        afterFailure = sites.sites(hasFailed: true).map(\.sentence) + sites.distrust(hasFailed: true)
        self.isListEmpty = isListEmpty
        hasUntrusted = sites.hasUntrusted
    }
}
