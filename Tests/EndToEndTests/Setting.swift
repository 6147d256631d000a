// SPDX-License-Identifier: Apache-2.0

/// A user with a password and two certificates, whose list contains all sites in the table, and the user's proxy.
final class Setting: Sendable {
    private static let made = Result { try Setting() }

    static var shared: Setting { get throws { try made.get() } }

    let origins: Origins
    let user: Countersign
    let proxy: RunningProxy

    private init() throws {
        origins = try Origins.shared
        user = try Countersign()
        try user.enroll()
        try user.importIdentity("laptop")
        try user.importIdentity("badge")
        for row in Row.all {
            guard let options = row.options else { continue }
            try user.allow("\(row.siteURL(origins)) \(options)")
        }
        proxy = try user.serve()
    }
}
